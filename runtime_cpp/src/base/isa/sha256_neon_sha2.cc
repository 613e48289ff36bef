// SHA-256 with the Armv8 cryptographic extension (SHA256H, SHA256H2, SHA256SU0, SHA256SU1).
//
// One pair of H and H2 does four rounds on {a, b, c, d} and {e, f, g, h}.
#include <arm_neon.h>

#include "base/isa/sha256_isa.h"

namespace sapwood {

void sha256_compress_neon_sha2(uint32_t state[8], const uint8_t* data, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks != 0; --blocks, data += 64) {
    const uint32x4_t abcd_before = abcd, efgh_before = efgh;
    uint32x4_t w[4];  // the last 16 words of the schedule, as a ring of four vectors
    for (int i = 0; i < 4; ++i) {
      w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(data + 16 * i)));
    }
    for (int quad = 0; quad < 16; ++quad) {
      uint32x4_t& now = w[quad % 4];
      if (quad >= 4) {
        now = vsha256su1q_u32(vsha256su0q_u32(now, w[(quad + 1) % 4]), w[(quad + 2) % 4],
                              w[(quad + 3) % 4]);
      }
      const uint32x4_t words = vaddq_u32(now, vld1q_u32(kSha256Round + 4 * quad));
      const uint32x4_t abcd_old = abcd;
      abcd = vsha256hq_u32(abcd, efgh, words);
      efgh = vsha256h2q_u32(efgh, abcd_old, words);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}

}  // namespace sapwood
