#include "kernels/embedding.h"

#include <cstring>

#include "base/half.h"

namespace sapwood {

void embed_token(const LinearWeights& table, int token, float scale, float* out) {
  const LinearFormat& format = table.format;
  const int lane = token % kPanel;
  const uint8_t* group = table.data + static_cast<size_t>(token / kPanel) * table.panel_bytes();
  const size_t code_bytes = static_cast<size_t>(format.group) * kPanel * format.bits / 8;
  for (int begin = 0; begin < table.inputs; begin += format.group, group += format.group_bytes()) {
    uint16_t halves[2] = {0, 0};
    std::memcpy(&halves[0], group + code_bytes + lane * 2, 2);
    if (format.has_min) std::memcpy(&halves[1], group + code_bytes + (kPanel + lane) * 2, 2);
    const float weight_scale = half_to_float(halves[0]);
    const float minimum = half_to_float(halves[1]);
    for (int i = 0; i < format.group; ++i) {
      const uint8_t* part = group + static_cast<size_t>(i / 32) * 32 * kPanel * format.bits / 8;
      const int quad = i % 32 / 4;
      int code;
      if (format.bits == 8) {
        code = part[quad * 64 + lane * 4 + i % 4];
      } else {
        const uint8_t both = part[quad / 2 * 64 + lane * 4 + i % 4];
        code = quad % 2 == 0 ? both & 15 : both >> 4;
      }
      const float weight = static_cast<float>(code - format.zero_point()) * weight_scale + minimum;
      out[begin + i] = weight * scale;
    }
  }
}

}  // namespace sapwood
