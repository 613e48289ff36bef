// What sha256.cc and its variants for one instruction set share. Nothing inline: see half.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sapwood {

// The 64 round constants of FIPS 180-4, section 4.2.2.
extern const uint32_t kSha256Round[64];

void sha256_compress_shani(uint32_t state[8], const uint8_t* data, size_t blocks);
void sha256_compress_neon_sha2(uint32_t state[8], const uint8_t* data, size_t blocks);

}  // namespace sapwood
