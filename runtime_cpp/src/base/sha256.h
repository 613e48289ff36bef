// SHA-256 (FIPS 180-4), with the processor's SHA instructions where it has them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sapwood {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();

  void update(std::span<const uint8_t> bytes);
  Sha256Digest finish();  // once; the object is used up

  // Mixes `blocks` blocks of 64 bytes into the state; every variant gives the same.
  using Compress = void (*)(uint32_t state[8], const uint8_t* data, size_t blocks);

  // As above with a given variant: how the tests compare them.
  explicit Sha256(Compress compress);

 private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  uint64_t bytes_ = 0;
  Compress compress_;
};

// Variants this machine can run, the portable one first, the best last.
struct Sha256Variant {
  std::string_view name;
  Sha256::Compress compress;
};
std::span<const Sha256Variant> runnable_sha256();

Sha256Digest sha256(std::span<const uint8_t> bytes);
std::string hexadecimal(const Sha256Digest& digest);  // 64 lower-case digits

}  // namespace sapwood
