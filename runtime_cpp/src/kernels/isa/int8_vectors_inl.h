// Vectors as int8 attention takes them (attention_int8_inl.h): quantising, storing, and the query
// vectors of a block with all that becomes of them. Included once per instruction set.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/attention_limits.h"
#include "kernels/isa/elementwise_inl.h"
#include "kernels/kernels.h"

namespace sapwood::SAPWOOD_ISA {

// Codes and scales of a vector in groups of 32 dimensions, the last of 16 if there is no more.
// visit(group, scale, sum of the codes).
template <typename Visit>
inline void quantize_vector(const float* x, int head_dim, int8_t* codes, Visit visit) {
  for (int d = 0; d < head_dim; d += kKeyGroup) {
    const bool whole = head_dim - d >= kKeyGroup;
    const Lanes a = load(x + d);
    const Lanes b = whole ? load(x + d + 16) : set1(0.0f);
    const SymmetricScale scale = symmetric_scale(reduce_max(max(abs(a), abs(b))));
    int32_t sum = store_bytes(codes + d, to_int(mul(a, set1(scale.inverse))));
    if (whole) sum += store_bytes(codes + d + 16, to_int(mul(b, set1(scale.inverse))));
    visit(d / kKeyGroup, scale.scale, sum);
  }
}

inline void store_int8(const KvLayerView& kv, int kv_head, int slot, const float* k,
                       const float* v) {
  const KvLayout& layout = kv.layout;
  const Int8Head head = kv.int8_head(kv_head);
  int8_t codes[kKeyGroup];
  for (int d = 0; k != nullptr && d < layout.head_dim; d += kKeyGroup) {
    const int count = std::min(kKeyGroup, layout.head_dim - d);
    quantize_vector(k + d, count, codes, [&](int, float scale, int32_t) {
      head.key_scales[layout.key_scale(slot, d / kKeyGroup)] = scale;
    });
    for (int i = 0; i < count; ++i) {
      head.key_codes[layout.key_code(slot, d + i)] = static_cast<uint8_t>(codes[i] + 128);
    }
  }
  if (v != nullptr) {
    Lanes largest = set1(0.0f);
    for (int d = 0; d < layout.head_dim; d += 16) largest = max(largest, abs(load(v + d)));
    const SymmetricScale scale = symmetric_scale(reduce_max(largest));
    head.value_scales[slot] = scale.scale;
    for (int d = 0; d < layout.head_dim; d += 16) {
      store_bytes(codes, to_int(mul(load(v + d), set1(scale.inverse))));
      for (int i = 0; i < 16; ++i) head.value_codes[layout.value_code(slot, d + i)] = codes[i];
    }
  }
}

// The query vectors of a block, and what a tile makes of them. One piece of scratch.
struct Int8Vectors {
  int head_dim;
  int groups;
  float* sums;         // [vectors][head_dim], weighted values so far
  int32_t* tile_sums;  // [vectors][head_dim], where a tile is added up in several parts
  float* scores;       // [vectors][kAttentionTile] in units of ln 2, then weights
  float* totals;       // [vectors][16], weights so far, by lane
  float* largest;      // [vectors], score so far
  float* decay;        // [vectors], what the tile makes of the sums so far
  float* tile_scale;   // [vectors], of the weights' codes
  float* scales;       // [vectors][groups], of the query's codes, times the attention's
  int32_t* start;      // [vectors][groups], minus the bias of the keys
  int8_t* codes;       // [vectors][head_dim]
  int8_t* weights;     // [vectors][kAttentionTile]
  int8_t* aside;       // [vectors][kAside], weights with zeros around them

  static constexpr int kAside = kAttentionTile + 2 * kValueQuad;

  Int8Vectors(float* scratch, int vectors, int head_dim)
      : head_dim(head_dim), groups((head_dim + kKeyGroup - 1) / kKeyGroup) {
    auto take = [vectors, next = scratch](auto** array, size_t each) mutable {
      *array = reinterpret_cast<std::remove_reference_t<decltype(**array)>*>(next);
      next += each * vectors * sizeof(**array) / sizeof(float);
    };
    take(&sums, head_dim);
    take(&tile_sums, head_dim);
    take(&scores, kAttentionTile);
    take(&totals, 16);
    take(&largest, 1);
    take(&decay, 1);
    take(&tile_scale, 1);
    take(&scales, groups);
    take(&start, groups);
    take(&codes, head_dim);
    take(&weights, kAttentionTile);
    take(&aside, kAside);
    std::fill_n(sums, static_cast<size_t>(vectors) * head_dim, 0.0f);
    std::fill_n(totals, static_cast<size_t>(vectors) * 16, 0.0f);
    std::fill_n(largest, vectors, std::numeric_limits<float>::lowest());
  }

  void set_query(int v, const float* q, float scale) {
    quantize_vector(q, head_dim, codes + static_cast<size_t>(v) * head_dim,
                    [&](int group, float of_group, int32_t sum) {
                      scales[v * groups + group] = of_group * scale;
                      start[v * groups + group] = -kQuadBias * sum;
                    });
  }
};

}  // namespace sapwood::SAPWOOD_ISA
