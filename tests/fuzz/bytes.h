// A fuzz input as decisions: one byte each, zeros once it is used up. And what a broken promise
// does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  int next() { return empty() ? 0 : data_[at_++]; }
  // 0 .. limit - 1.
  int below(int limit) { return limit > 0 ? next() % limit : 0; }

 private:
  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

// A seed: so many random bytes.
inline std::string random_bytes(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}
