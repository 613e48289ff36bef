// Tree attention over a float16 cache (kv_layout.h). Included once per instruction set.
//
// Scores first, then the softmax, then the weighted values: three passes instead of an online
// softmax, because every sum then runs over positions in order, whatever part of a row's sequence
// is shared and wherever its slots lie. Columns that all rows of a block see (the committed prefix
// and the common start of their paths) are read once for the block; the rest row by row. The cost
// is one float a row, head and visible position of scratch.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/isa/attention_block_inl.h"
#include "kernels/isa/elementwise_inl.h"

namespace sapwood::SAPWOOD_ISA {

// Scores of `count` query vectors (stride apart, already scaled) against the keys of columns
// begin .. end, whose slots are slots[column - begin]; scores[v * score_stride + column].
struct ScoreColumns {
  const KvLayerView& kv;
  int kv_head;
  int head_dim;

  template <int kCount>
  void tile(const uint16_t* keys, const float* q, Lanes out[kCount]) const {
#pragma GCC unroll 12
    for (int v = 0; v < kCount; ++v) out[v] = set1(0.0f);
    for (int d = 0; d < head_dim; ++d) {
      const Lanes key = load_half(keys + d * kKeyTile);
#pragma GCC unroll 12
      for (int v = 0; v < kCount; ++v) out[v] = fma(set1(q[v * head_dim + d]), key, out[v]);
    }
  }

  template <int kCount>
  void block(const float* q, const int32_t* slots, int columns, float* scores,
             size_t score_stride) const {
    for (int column = 0; column < columns;) {
      const int slot = slots[column];
      int run = 1;  // columns whose slots follow each other within the tile
      while (column + run < columns && slots[column + run] == slot + run &&
             (slot + run) % kKeyTile != 0) {
        ++run;
      }
      Lanes out[kCount];
      tile<kCount>(kv.keys + kv.layout.key_offset(kv_head, slot - slot % kKeyTile, 0), q, out);
      for (int v = 0; v < kCount; ++v) {
        float* target = scores + v * score_stride + column;
        if (run == kKeyTile) {
          store(target, out[v]);
        } else {
          float lanes[kKeyTile];
          store(lanes, out[v]);
          std::memcpy(target, lanes + slot % kKeyTile, run * sizeof(float));
        }
      }
      column += run;
    }
  }

  void operator()(const float* q, int count, const int32_t* slots, int columns, float* scores,
                  size_t score_stride) const {
    int v = 0;
    const auto step = [&]<int kCount>() {
      while (count - v >= kCount) {
        block<kCount>(q + static_cast<size_t>(v) * head_dim, slots, columns,
                      scores + v * score_stride, score_stride);
        v += kCount;
      }
    };
    if constexpr (kScoreBlock >= 12) step.template operator()<12>();
    if constexpr (kScoreBlock >= 6) step.template operator()<6>();
    step.template operator()<4>();
    step.template operator()<3>();
    step.template operator()<2>();
    step.template operator()<1>();
  }
};

// sums[v][dim] += weight[v][column] * value[column][dim], column after column.
struct AddValues {
  const KvLayerView& kv;
  int kv_head;
  int head_dim;

  template <int kCount, int kWidth>
  void block(const float* weights, size_t weight_stride, const int32_t* slots, int columns,
             float* sums) const {
    for (int d = 0; d < head_dim; d += kWidth * 16) {
      Lanes acc[kCount][kWidth];
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) {
#pragma GCC unroll 4
        for (int k = 0; k < kWidth; ++k) acc[v][k] = load(sums + v * head_dim + d + k * 16);
      }
      for (int column = 0; column < columns; ++column) {
        const uint16_t* value = kv.values + kv.layout.value_offset(kv_head, slots[column], d);
        Lanes part[kWidth];
#pragma GCC unroll 4
        for (int k = 0; k < kWidth; ++k) part[k] = load_half(value + k * 16);
#pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v) {
          const Lanes weight = set1(weights[v * weight_stride + column]);
#pragma GCC unroll 4
          for (int k = 0; k < kWidth; ++k) acc[v][k] = fma(weight, part[k], acc[v][k]);
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < kCount; ++v) {
#pragma GCC unroll 4
        for (int k = 0; k < kWidth; ++k) store(sums + v * head_dim + d + k * 16, acc[v][k]);
      }
    }
  }

  template <int kWidth>
  void all(const float* weights, size_t weight_stride, int count, const int32_t* slots, int columns,
           float* sums) const {
    int v = 0;
    const auto step = [&]<int kCount>() {
      while (count - v >= kCount) {
        block<kCount, kWidth>(weights + v * weight_stride, weight_stride, slots, columns,
                              sums + static_cast<size_t>(v) * head_dim);
        v += kCount;
      }
    };
    if constexpr (kValueBlock >= 6) step.template operator()<6>();
    if constexpr (kValueBlock >= 3) step.template operator()<3>();
    if constexpr (kValueBlock >= 2) step.template operator()<2>();
    step.template operator()<1>();
  }

  void operator()(const float* weights, size_t weight_stride, int count, const int32_t* slots,
                  int columns, float* sums) const {
    if (head_dim % 64 == 0) {
      all<4>(weights, weight_stride, count, slots, columns, sums);
    } else {
      all<1>(weights, weight_stride, count, slots, columns, sums);
    }
  }
};

// Turns scores[begin .. end) into weights that add up to 1 / the returned factor; everything else
// in [clear_begin, padded end) becomes zero, which adds nothing, exactly.
inline float softmax_weights(float* scores, int clear_begin, int begin, int end) {
  const int padded = begin + (end - begin + 15) / 16 * 16;
  std::fill(scores + end, scores + padded, -std::numeric_limits<float>::infinity());
  Lanes largest = set1(scores[begin]);
  for (int i = begin; i < padded; i += 16) largest = max(largest, load(scores + i));
  const Lanes shift = set1(reduce_max(largest));
  for (int i = begin; i < padded; i += 16) {
    store(scores + i, exponential(sub(load(scores + i), shift)));
  }
  std::fill(scores + end, scores + padded, 0.0f);
  std::fill(scores + clear_begin, scores + begin, 0.0f);
  Lanes sum = set1(0.0f);
  for (int i = begin; i < padded; i += 16) sum = add(sum, load(scores + i));
  return 1.0f / reduce_add(sum);
}

inline void attention_float16(const AttentionShape& shape, const RowBatch& batch,
                              const KvLayerView& kv, int head_begin, int head_end, int row_begin,
                              int row_end, const float* q, int q_stride, float* out, int out_stride,
                              float* scratch) {
  const int group = head_end - head_begin;
  const int kv_head = head_begin / (shape.heads / shape.kv_heads);
  const int head_dim = shape.head_dim;
  const int context = batch.context();
  const ScoreColumns score{kv, kv_head, head_dim};
  const AddValues add_values{kv, kv_head, head_dim};

  for (int begin = row_begin; begin < row_end; begin += kAttentionRows) {
    const AttentionBlock block(shape, batch, begin, row_end);
    const int rows = block.rows, common = block.common;
    const size_t score_stride = (static_cast<size_t>(context) + block.longest + 15) / 16 * 16 + 16;
    float* queries = scratch;
    float* sums = queries + static_cast<size_t>(rows) * group * head_dim;
    float* scores = sums + static_cast<size_t>(rows) * group * head_dim;

    const Lanes scale = set1(shape.scale);
    for (int row = 0; row < rows; ++row) {
      const float* source = q + static_cast<size_t>(begin + row) * q_stride + head_begin * head_dim;
      float* target = queries + static_cast<size_t>(row) * group * head_dim;
      for (int d = 0; d < group * head_dim; d += 16)
        store(target + d, mul(load(source + d), scale));
    }
    std::fill_n(sums, static_cast<size_t>(rows) * group * head_dim, 0.0f);

    const int32_t* shared_path = block.path(0);
    const int context_first = std::min(block.first, context);
    const int path_first = std::min(std::max(0, block.first - context), common);
    score(queries, rows * group, batch.context_slots.data() + context_first,
          context - context_first, scores + context_first, score_stride);
    score(queries, rows * group, shared_path + path_first, common - path_first,
          scores + context + path_first, score_stride);

    float inverse[kAttentionRows * kMaxGroup];
    const auto own_path = [&](int row) {  // beyond what the block shares
      return std::pair{block.path(row) + common, block.length(row) - common};
    };
    for (int row = 0; row < rows; ++row) {
      const auto [slots, columns] = own_path(row);
      float* row_scores = scores + static_cast<size_t>(row) * group * score_stride;
      score(queries + static_cast<size_t>(row) * group * head_dim, group, slots, columns,
            row_scores + context + common, score_stride);
      const int first = block.first_seen(row);
      for (int v = 0; v < group; ++v) {
        inverse[row * group + v] = softmax_weights(
            row_scores + v * score_stride, std::min(block.first, first), first, block.end(row));
      }
    }

    add_values(scores + context_first, score_stride, rows * group,
               batch.context_slots.data() + context_first, context - context_first, sums);
    add_values(scores + context + path_first, score_stride, rows * group, shared_path + path_first,
               common - path_first, sums);
    for (int row = 0; row < rows; ++row) {
      const auto [slots, columns] = own_path(row);
      add_values(scores + static_cast<size_t>(row) * group * score_stride + context + common,
                 score_stride, group, slots, columns,
                 sums + static_cast<size_t>(row) * group * head_dim);
    }

    for (int row = 0; row < rows; ++row) {
      float* target = out + static_cast<size_t>(begin + row) * out_stride + head_begin * head_dim;
      for (int v = 0; v < group; ++v) {
        const Lanes factor = set1(inverse[row * group + v]);
        const float* source = sums + (static_cast<size_t>(row) * group + v) * head_dim;
        for (int d = 0; d < head_dim; d += 16) {
          store(target + v * head_dim + d, mul(load(source + d), factor));
        }
      }
    }
  }
}

inline void store_float16(const KvLayerView& kv, int kv_head, int slot, const float* k,
                          const float* v) {
  const int head_dim = kv.layout.head_dim;
  uint16_t* keys = kv.keys + kv.layout.key_offset(kv_head, slot, 0);
  uint16_t* values = kv.values + kv.layout.value_offset(kv_head, slot, 0);
  for (int d = 0; d < head_dim; d += 16) {
    if (k != nullptr) {
      uint16_t halves[16];
      store_half(halves, load(k + d));
      for (int i = 0; i < 16; ++i) keys[(d + i) * kKeyTile] = halves[i];
    }
    if (v != nullptr) store_half(values + d, load(v + d));
  }
}

}  // namespace sapwood::SAPWOOD_ISA
