// The dot products of int8 attention (attention_int8_inl.h): scores of query vectors against keys,
// and weighted values, for runs of neighbouring slots. Included once per instruction set.
#pragma once

#include "kernels/isa/int8_vectors_inl.h"

namespace sapwood::SAPWOOD_ISA {

// Neighbouring positions begin .. begin + count of a tile in neighbouring slots.
struct SlotRun {
  int slot;
  int begin;
  int count;
};

struct SlotRuns {
  SlotRun runs[kAttentionTile];
  int count = 0;

  const SlotRun* begin() const { return runs; }
  const SlotRun* end() const { return runs + count; }

  // Positions from `position` on, as many as there are slots.
  void add(const int32_t* slots, int columns, int position) {
    for (int column = 0; column < columns;) {
      const int32_t* first = slots + column;
      int run = 1;
      while (column + run + 16 <= columns && follow(first + run, *first + run)) run += 16;
      while (column + run < columns && first[run] == *first + run) ++run;
      runs[count++] = {*first, position + column, run};
      column += run;
    }
  }

 private:
  static bool follow(const int32_t* slots, int slot) {
    int32_t different = 0;
    for (int i = 0; i < 16; ++i) different |= slots[i] ^ (slot + i);
    return different == 0;
  }
};

// Calls step<kCount>(first) for blocks of as many of `count` query vectors as registers serve.
template <typename Step>
inline void for_vectors(int count, Step step) {
  int v = 0;
  const auto blocks = [&]<int kCount>() {
    for (; count - v >= kCount; v += kCount) step.template operator()<kCount>(v);
  };
  if constexpr (kQuadRows >= 6) blocks.template operator()<6>();
  if constexpr (kQuadRows >= 3) blocks.template operator()<3>();
  if constexpr (kQuadRows >= 2) blocks.template operator()<2>();
  blocks.template operator()<1>();
}

// Panels of 16 values that `kCount` vectors meet at once, of the sums that registers hold.
template <int kCount>
inline constexpr int kPanelsAtOnce = kCount * 4 <= kQuadSums   ? 4
                                     : kCount * 2 <= kQuadSums ? 2
                                                               : 1;

// Scores of vectors against the keys of a run, into their place in the tile.
struct Int8Scores {
  const Int8Vectors& vectors;
  const Int8Head& head;

  template <int kCount>
  void keys(int v, int tile, const SlotRun& run) const {
    const int head_dim = vectors.head_dim, groups = vectors.groups;
    const uint8_t* codes = head.key_codes + static_cast<size_t>(tile) * kKeyTile * head_dim;
    const float* key_scales = head.key_scales + static_cast<size_t>(tile) * kKeyTile * groups;
    Lanes out[kCount];
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) out[r] = set1(0.0f);
    for (int group = 0; group < groups; ++group) {
      const int dim = group * kKeyGroup;
      IntLanes dots[kCount][1];
#pragma GCC unroll 6
      for (int r = 0; r < kCount; ++r) {
        dots[r][0] = set1_int(vectors.start[(v + r) * groups + group]);
      }
      dot_quads<kCount, 1, 4, Quads::kBiased>(
          codes + dim * kKeyTile, 0, kKeyTile * 4,
          vectors.codes + static_cast<size_t>(v) * head_dim + dim, head_dim,
          std::min(kKeyGroup, head_dim - dim) / 4, dots);
      const Lanes key_scale = load(key_scales + group * kKeyTile);
#pragma GCC unroll 6
      for (int r = 0; r < kCount; ++r) {
        const Lanes scale = set1(vectors.scales[(v + r) * groups + group]);
        out[r] = fma(mul(to_float(dots[r][0]), scale), key_scale, out[r]);
      }
    }
    const int first_slot = tile * kKeyTile;
    const int begin = std::max(first_slot, run.slot);
    const int count = std::min(first_slot + kKeyTile, run.slot + run.count) - begin;
    float* target = vectors.scores + v * kAttentionTile + run.begin + begin - run.slot;
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r, target += kAttentionTile) {
      if (count == kKeyTile) {
        store(target, out[r]);
      } else {
        float lanes[kKeyTile];
        store(lanes, out[r]);
        std::memcpy(target, lanes + begin - first_slot, count * sizeof(float));
      }
    }
  }

  void operator()(int first, int count, const SlotRun& run) const {
    const int tile_end = (run.slot + run.count - 1) / kKeyTile + 1;
    for_vectors(count, [&]<int kCount>(int v) {
      for (int tile = run.slot / kKeyTile; tile < tile_end; ++tile) {
        keys<kCount>(first + v, tile, run);
      }
    });
  }
};

// Adds a run's weighted values to a tile's sums, and at its end the tile to the sums of all.
struct Int8Values {
  const Int8Vectors& vectors;
  const Int8Head& head;

  template <int kCount, int kPanels>
  void block(int v, const int8_t* codes, int quads, const int8_t* weights, size_t weight_stride,
             bool begins, bool ends) const {
    const size_t head_dim = vectors.head_dim;
    for (size_t d = 0; d < head_dim; d += kPanels * 16) {
      IntLanes dots[kCount][kPanels];
#pragma GCC unroll 6
      for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) dots[r][p] = set1_int(0);
      }
      int32_t* before = vectors.tile_sums + v * head_dim + d;
      if (!begins) {
#pragma GCC unroll 6
        for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
          for (int p = 0; p < kPanels; ++p) dots[r][p] = load_int(before + r * head_dim + 16 * p);
        }
      }
      dot_quads<kCount, kPanels, 1, Quads::kSigned>(
          reinterpret_cast<const uint8_t*>(codes) + d * kValueQuad, 16 * kValueQuad,
          head_dim * kValueQuad, weights, weight_stride, quads, dots);
      if (!ends) {
#pragma GCC unroll 6
        for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
          for (int p = 0; p < kPanels; ++p) store_int(before + r * head_dim + 16 * p, dots[r][p]);
        }
        continue;
      }
#pragma GCC unroll 6
      for (int r = 0; r < kCount; ++r) {
        const Lanes scale = set1(vectors.tile_scale[v + r]), decay = set1(vectors.decay[v + r]);
        float* sums = vectors.sums + (v + r) * head_dim + d;
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          store(sums + 16 * p, fma(to_float(dots[r][p]), scale, mul(load(sums + 16 * p), decay)));
        }
      }
    }
  }

  // A run of no positions only begins or ends.
  void operator()(int first, int count, const SlotRun& run, bool begins, bool ends) const {
    const int before = run.slot % kValueQuad;
    const int quads = (before + run.count + kValueQuad - 1) / kValueQuad;
    const int8_t* codes =
        head.value_codes + static_cast<size_t>(run.slot - before) * vectors.head_dim;
    const int8_t* weights = vectors.weights + first * kAttentionTile + run.begin;
    size_t stride = kAttentionTile;
    if (quads * kValueQuad != run.count) {  // other positions' weights stand beside the run's
      int8_t* aside = vectors.aside + first * Int8Vectors::kAside;
      for (int v = 0; v < count; ++v) {
        int8_t* target = aside + v * Int8Vectors::kAside;
        std::memset(target, 0, quads * kValueQuad);
        std::memcpy(target + before, weights + v * kAttentionTile, run.count);
      }
      weights = aside;
      stride = Int8Vectors::kAside;
    }
    for_vectors(count, [&]<int kCount>(int v) {
      const auto run_block = [&]<int kPanels>() {
        block<kCount, kPanels>(first + v, codes, quads, weights + v * stride, stride, begins, ends);
      };
      constexpr int kPanels = kPanelsAtOnce<kCount>;
      if (vectors.head_dim % (16 * kPanels) == 0) {
        run_block.template operator()<kPanels>();
      } else {
        run_block.template operator()<1>();
      }
    });
  }
};

}  // namespace sapwood::SAPWOOD_ISA
