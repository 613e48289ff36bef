// Tree attention over an int8 cache (kv_layout.h). Included once per instruction set.
//
// Query vectors are quantised like keys, in groups of 32 dimensions, so a score is a few exact
// integer dot products. The softmax runs online (Milakov and Gimelshein 2018) over tiles of 64
// positions; a tile's weights, times their values' scales, are quantised to 0 .. 127 by the largest
// of them, so its weighted values are integer sums, too. Tiles are cut by position, a tile's scale
// is the row's own, and integers add up in any order: a row's bits depend neither on the rows
// beside it, nor on where its slots lie, nor on how much of its sequence is committed.
//
// Granularity, by mean KL to float attention on 1,000 tokens of English, SmolLM2, in nats: keys and
// queries scaled per head 0.00117, per 32 dimensions 0.00059; values per slot and head 0.00004;
// weights of 7 bits a tile of 64 add 0.0002.
#pragma once

#include <cstring>

#include "kernels/isa/attention_block_inl.h"
#include "kernels/isa/int8_products_inl.h"

namespace sapwood::SAPWOOD_ISA {

// 2^x for x <= 0, relative error below 3e-6, and 1 at 0: a minimax polynomial of degree 4 on
// |r| <= 1/2. Weights are rounded to 7 bits, and exponential() took a third of a tile's time, so
// scores come in units of ln 2 and its reduction and accuracy are left out. Below -125 as at
// -125.
inline Lanes power_of_two_up_to_1(Lanes x) {
  x = max(x, set1(-125.0f));
  const IntLanes n = to_int(x);
  const Lanes r = sub(x, to_float(n));
  Lanes p = set1(0.009582853876f);
  p = fma(p, r, set1(0.055906426162f));
  p = fma(p, r, set1(0.240240991116f));
  p = fma(p, r, set1(0.693124175072f));
  p = fma(p, r, set1(1.0f));
  return mul(p, power_of_two(n));
}

// Turns a tile's scores of `count` vectors, -infinity where their row does not see, into codes of
// weights times value_scales, all kAttentionTile long. Step by step for all vectors, since a single
// one is a long chain of dependent instructions.
inline void weigh_tile(const Int8Vectors& vectors, int first, int count,
                       const float* value_scales) {
  static_assert(kAttentionTile == 64);
  const auto largest_of = [](const Lanes x[4]) {
    return reduce_max(max(max(x[0], x[1]), max(x[2], x[3])));
  };
  float before[kMaxGroup];
  for (int i = 0; i < count; ++i) {
    const float* scores = vectors.scores + (first + i) * kAttentionTile;
    const Lanes x[4] = {load(scores), load(scores + 16), load(scores + 32), load(scores + 48)};
    before[i] = vectors.largest[first + i];
    vectors.largest[first + i] = std::max(before[i], largest_of(x));
  }
  for (int i = 0; i < count; ++i) {
    const float largest = vectors.largest[first + i];
    float decay[16] = {1.0f};
    if (largest != before[i]) store(decay, power_of_two_up_to_1(set1(before[i] - largest)));
    vectors.decay[first + i] = decay[0];
    float* weights = vectors.scores + (first + i) * kAttentionTile;
    Lanes x[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = power_of_two_up_to_1(sub(load(weights + 16 * k), set1(largest)));
      store(weights + 16 * k, mul(x[k], load(value_scales + 16 * k)));
    }
    float* totals = vectors.totals + (first + i) * 16;
    store(totals, fma(load(totals), set1(decay[0]), add(add(x[0], x[1]), add(x[2], x[3]))));
  }
  for (int i = 0; i < count; ++i) {
    const float* weights = vectors.scores + (first + i) * kAttentionTile;
    const Lanes x[4] = {load(weights), load(weights + 16), load(weights + 32), load(weights + 48)};
    const SymmetricScale scale = symmetric_scale(largest_of(x));
    vectors.tile_scale[first + i] = scale.scale;
    int8_t* codes = vectors.weights + (first + i) * kAttentionTile;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      store_bytes(codes + 16 * k, to_int(mul(x[k], set1(scale.inverse))));
    }
  }
}

// One tile of positions for all rows of a block.
struct Int8Tile {
  const AttentionBlock& block;
  const Int8Head& head;
  const Int8Vectors& vectors;
  int group;  // vectors of a row

  void gather_scales(const SlotRuns& runs, float* scales) const {
    for (const SlotRun& run : runs) {
      std::memcpy(scales + run.begin, head.value_scales + run.slot, run.count * sizeof(float));
    }
  }

  // Positions begin .. end of a row beyond what the block shares.
  SlotRuns own_runs(int row, int begin, int end) const {
    const int shared_end = block.context + block.common;
    const int first = std::max(begin, shared_end);
    SlotRuns runs;
    runs.add(block.path(row) + first - block.context, std::min(end, block.end(row)) - first,
             first - begin);
    return runs;
  }

  // Weighs the tile for a row's vectors; scales becomes zero where the row does not see.
  void weigh(int row, int begin, float* scales) const {
    const int first = std::max(block.first_seen(row) - begin, 0);
    const int last = std::min(block.end(row) - begin, kAttentionTile);
    if (first < last) std::fill(scales, scales + first, 0.0f);
    for (int v = row * group; v < (row + 1) * group; ++v) {
      float* scores = vectors.scores + v * kAttentionTile;
      if (first < last) {
        std::fill(scores, scores + first, -std::numeric_limits<float>::infinity());
        std::fill(scores + last, scores + kAttentionTile, -std::numeric_limits<float>::infinity());
      } else {  // the row sees nothing of the tile
        vectors.decay[v] = 1.0f;
        vectors.tile_scale[v] = 0.0f;
        std::memset(vectors.weights + v * kAttentionTile, 0, kAttentionTile);
      }
    }
    if (first < last) weigh_tile(vectors, row * group, group, scales);
  }

  void operator()(int begin) const {
    const int end = begin + kAttentionTile;
    const Int8Scores score{vectors, head};
    const Int8Values add_values{vectors, head};
    const int shared_end = block.context + block.common;

    SlotRuns shared;
    const int in_context = std::min(std::max(begin, block.first), block.context);
    shared.add(block.context_slots() + in_context, std::min(end, block.context) - in_context,
               in_context - begin);
    const int in_path = std::max({begin, block.first, block.context});
    shared.add(block.path(0) + in_path - block.context, std::min(end, shared_end) - in_path,
               in_path - begin);
    for (const SlotRun& run : shared) score(0, block.rows * group, run);
    float shared_scales[kAttentionTile] = {};
    gather_scales(shared, shared_scales);

    bool begins = true;  // no part of the tile's sums lies in tile_sums
    for (int row = 0; row < block.rows; ++row) {
      float scales[kAttentionTile];
      std::memcpy(scales, shared_scales, sizeof scales);
      if (std::min(end, block.end(row)) <= std::max(begin, shared_end)) {
        weigh(row, begin, scales);
        continue;
      }
      if (begins) {
        std::fill_n(vectors.tile_sums, static_cast<size_t>(block.rows) * group * vectors.head_dim,
                    0);
        begins = false;
      }
      const SlotRuns own = own_runs(row, begin, end);
      for (const SlotRun& run : own) score(row * group, group, run);
      gather_scales(own, scales);
      weigh(row, begin, scales);
      for (const SlotRun& run : own) add_values(row * group, group, run, false, false);
    }
    if (shared.count == 0) shared.runs[shared.count++] = {0, 0, 0};
    for (const SlotRun& run : shared) {
      add_values(0, block.rows * group, run, begins, &run == shared.end() - 1);
      begins = false;
    }
  }
};

inline void attention_int8(const AttentionShape& shape, const RowBatch& batch,
                           const KvLayerView& kv, int head_begin, int head_end, int row_begin,
                           int row_end, const float* q, int q_stride, float* out, int out_stride,
                           float* scratch) {
  const int group = head_end - head_begin;
  const int head_dim = shape.head_dim;
  const Int8Head head = kv.int8_head(head_begin / (shape.heads / shape.kv_heads));
  const float scale = shape.scale * 1.44269504f;  // scores in units of ln 2
  for (int begin = row_begin; begin < row_end; begin += kAttentionRows) {
    const AttentionBlock block(shape, batch, begin, row_end);
    Int8Vectors vectors(scratch, block.rows * group, head_dim);
    for (int v = 0; v < block.rows * group; ++v) {
      vectors.set_query(v,
                        q + static_cast<size_t>(begin + v / group) * q_stride +
                            (head_begin + v % group) * head_dim,
                        scale);
    }
    const Int8Tile tile{block, head, vectors, group};
    for (int first = block.first / kAttentionTile * kAttentionTile;
         first < block.context + block.longest; first += kAttentionTile) {
      tile(first);
    }
    for (int v = 0; v < block.rows * group; ++v) {
      const Lanes inverse = set1(1.0f / reduce_add(load(vectors.totals + v * 16)));
      float* target = out + static_cast<size_t>(begin + v / group) * out_stride +
                      (head_begin + v % group) * head_dim;
      for (int d = 0; d < head_dim; d += 16) {
        // + 0: a sum that underflowed to -0 meets the zeros of tiles the row does not see only
        // where there are such.
        store(target + d,
              fma(load(vectors.sums + static_cast<size_t>(v) * head_dim + d), inverse, set1(0.0f)));
      }
    }
  }
}

}  // namespace sapwood::SAPWOOD_ISA
