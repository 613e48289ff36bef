// SHA-256 with the x86 SHA extensions (SHA256RNDS2, SHA256MSG1, SHA256MSG2).
//
// The instructions keep the eight words as two vectors, from the high lane down: abef = {a, b, e,
// f} and cdgh = {c, d, g, h}. One RNDS2 does two rounds and returns the new abef; the old one
// becomes cdgh.
#include <immintrin.h>

#include "base/isa/sha256_isa.h"

namespace sapwood {

void sha256_compress_shani(uint32_t state[8], const uint8_t* data, size_t blocks) {
  const __m128i to_words = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i abef = _mm_set_epi32(static_cast<int>(state[0]), static_cast<int>(state[1]),
                               static_cast<int>(state[4]), static_cast<int>(state[5]));
  __m128i cdgh = _mm_set_epi32(static_cast<int>(state[2]), static_cast<int>(state[3]),
                               static_cast<int>(state[6]), static_cast<int>(state[7]));
  for (; blocks != 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];  // the last 16 words of the schedule, as a ring of four vectors
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + 16 * i));
      w[i] = _mm_shuffle_epi8(w[i], to_words);
    }
    for (int quad = 0; quad < 16; ++quad) {  // four rounds each
      __m128i& now = w[quad % 4];
      if (quad >= 4) {
        // W[t] = s1(W[t-2]) + W[t-7] + s0(W[t-15]) + W[t-16] for four t; MSG1 adds the last two.
        const __m128i after = w[(quad + 1) % 4], recent = w[(quad + 2) % 4];
        const __m128i newest = w[(quad + 3) % 4];
        const __m128i seven_back = _mm_alignr_epi8(newest, recent, 4);
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, after), seven_back);
        now = _mm_sha256msg2_epu32(now, newest);
      }
      const __m128i constants =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(kSha256Round + 4 * quad));
      const __m128i low = _mm_add_epi32(now, constants);
      const __m128i high = _mm_shuffle_epi32(low, 0x0e);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, low);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, high);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  state[0] = static_cast<uint32_t>(_mm_extract_epi32(abef, 3));
  state[1] = static_cast<uint32_t>(_mm_extract_epi32(abef, 2));
  state[2] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 3));
  state[3] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 2));
  state[4] = static_cast<uint32_t>(_mm_extract_epi32(abef, 1));
  state[5] = static_cast<uint32_t>(_mm_extract_epi32(abef, 0));
  state[6] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 1));
  state[7] = static_cast<uint32_t>(_mm_extract_epi32(cdgh, 0));
}

}  // namespace sapwood
