#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/isa/sha256_isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace sapwood {

const uint32_t kSha256Round[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

namespace {

// FIPS 180-4, section 5.3.3.
constexpr std::array<uint32_t, 8> kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

uint32_t load_big_endian(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 |
         static_cast<uint32_t>(p[2]) << 8 | p[3];
}

// Section 6.2.2, the schedule kept as a ring of 16 words.
void compress_portable(uint32_t state[8], const uint8_t* data, size_t blocks) {
  for (; blocks != 0; --blocks, data += 64) {
    uint32_t w[16];
    for (int i = 0; i < 16; ++i) w[i] = load_big_endian(data + 4 * i);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    // Unrolled, the ring stays in registers and the letters need no moves: a quarter faster.
#pragma GCC unroll 64
    for (int t = 0; t < 64; ++t) {
      if (t >= 16) {
        const uint32_t early = w[(t + 1) & 15], late = w[(t + 14) & 15];
        const uint32_t sigma0 = std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3;
        const uint32_t sigma1 = std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10;
        w[t & 15] += sigma0 + w[(t + 9) & 15] + sigma1;
      }
      const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t choice = (e & f) ^ (~e & g);
      const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const uint32_t t1 = h + sum1 + choice + kSha256Round[t] + w[t & 15];
      h = g, g = f, f = e, e = d + t1;
      d = c, c = b, b = a, a = t1 + sum0 + majority;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)
bool has_sha_instructions() {
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool sse41 = (ecx >> 19 & 1u) != 0 && (ecx >> 9 & 1u) != 0;  // SSE4.1 and SSSE3
  if (!sse41 || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (ebx >> 29 & 1u) != 0;
}
#elif defined(__aarch64__) && defined(__linux__)
bool has_sha_instructions() { return (getauxval(AT_HWCAP) & HWCAP_SHA2) != 0; }
#endif

std::vector<Sha256Variant> find_variants() {
  std::vector<Sha256Variant> variants = {{"portable", compress_portable}};
#if defined(__x86_64__)
  if (has_sha_instructions()) variants.push_back({"sha-ni", sha256_compress_shani});
#elif defined(__aarch64__) && defined(__linux__)
  if (has_sha_instructions()) variants.push_back({"neon-sha2", sha256_compress_neon_sha2});
#endif
  return variants;
}

}  // namespace

std::span<const Sha256Variant> runnable_sha256() {
  static const std::vector<Sha256Variant> variants = find_variants();
  return variants;
}

Sha256::Sha256() : Sha256(runnable_sha256().back().compress) {}

Sha256::Sha256(Compress compress) : state_(kInitial), compress_(compress) {}

void Sha256::update(std::span<const uint8_t> bytes) {
  const size_t held = bytes_ % 64;
  bytes_ += bytes.size();
  if (held != 0) {
    const size_t taken = std::min(64 - held, bytes.size());
    std::copy_n(bytes.begin(), taken, pending_.begin() + held);
    bytes = bytes.subspan(taken);
    if (held + taken < 64) return;
    compress_(state_.data(), pending_.data(), 1);
  }
  const size_t blocks = bytes.size() / 64;
  if (blocks != 0) compress_(state_.data(), bytes.data(), blocks);
  bytes = bytes.subspan(blocks * 64);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
}

Sha256Digest Sha256::finish() {
  // A one bit, zeros, and the length in bits as 64 big-endian bits, to a multiple of 64 bytes.
  const uint64_t bits = bytes_ * 8;
  std::array<uint8_t, 72> tail{0x80};
  const size_t zeros_end = 1 + (119 - bytes_ % 64) % 64;
  for (size_t i = 0; i < 8; ++i) tail[zeros_end + i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  update({tail.data(), zeros_end + 8});
  Sha256Digest digest;
  for (size_t i = 0; i < 32; ++i) {
    digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256Digest sha256(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string hexadecimal(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace sapwood
