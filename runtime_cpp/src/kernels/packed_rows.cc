#include "kernels/packed_rows.h"

#include <cstddef>
#include <cstring>

namespace sapwood {
namespace {

constexpr size_t kCodes = 4;  // bytes of an output's codes that lie together

size_t row_offset(const LinearWeights& weights, int output) {
  return static_cast<size_t>(output / kPanel) * weights.panel_bytes();
}

// Calls visit(offset in the panel, bytes) for every stretch of an output's bytes, while it returns
// true; whether it always did.
template <typename Visit>
bool for_each_stretch(const LinearWeights& weights, int lane, Visit visit) {
  const LinearFormat& format = weights.format;
  const size_t halves = kPanel * 2;
  const size_t code_bytes = format.group_bytes() - halves * (format.has_min ? 2 : 1);
  size_t group = 0;
  for (int g = 0; g < weights.groups(); ++g, group += format.group_bytes()) {
    for (size_t at = 0; at < code_bytes; at += kPanel * kCodes) {
      if (!visit(group + at + static_cast<size_t>(lane) * kCodes, kCodes)) return false;
    }
    for (size_t at = code_bytes; at < format.group_bytes(); at += halves) {
      if (!visit(group + at + static_cast<size_t>(lane) * 2, size_t{2})) return false;
    }
  }
  return true;
}

}  // namespace

void copy_packed_row(const LinearWeights& from, int output, const LinearWeights& to, uint8_t* data,
                     int to_output) {
  // Stretches of different lanes lie equally far from one another everywhere.
  const uint8_t* source = from.data + row_offset(from, output);
  uint8_t* target = data + row_offset(to, to_output);
  const ptrdiff_t lanes = to_output % kPanel - output % kPanel;
  for_each_stretch(from, output % kPanel, [&](size_t at, size_t bytes) {
    std::memcpy(target + static_cast<ptrdiff_t>(at) + lanes * static_cast<ptrdiff_t>(bytes),
                source + at, bytes);
    return true;
  });
}

bool same_packed_row(const LinearWeights& a, int a_output, const LinearWeights& b, int b_output) {
  if (!(a.format == b.format) || a.inputs != b.inputs) return false;
  const uint8_t* first = a.data + row_offset(a, a_output);
  const uint8_t* second = b.data + row_offset(b, b_output);
  const ptrdiff_t lanes = b_output % kPanel - a_output % kPanel;
  return for_each_stretch(a, a_output % kPanel, [&](size_t at, size_t bytes) {
    return std::memcmp(second + static_cast<ptrdiff_t>(at) + lanes * static_cast<ptrdiff_t>(bytes),
                       first + at, bytes) == 0;
  });
}

}  // namespace sapwood
