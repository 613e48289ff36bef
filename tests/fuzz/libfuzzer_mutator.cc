// Half of libFuzzer's mutations are ours, which know JSON.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "mutate.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::mt19937_64 random(seed);
  const std::string mutant = mutate({reinterpret_cast<const char*>(data), size}, random);
  const size_t kept = std::min(mutant.size(), max_size);
  std::memcpy(data, mutant.data(), kept);
  return kept;
}
