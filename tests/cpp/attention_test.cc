// Attention over both formats of the cache: every kernel table against the scalar twin, bit for
// bit, and the scalar twin against plain double arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel_fixtures.h"
#include "kernels/attention_limits.h"
#include "kernels/kernels.h"

namespace sapwood::testing {
namespace {

struct AttentionCase {
  int heads, kv_heads, head_dim, window;

  AttentionShape shape() const { return {heads, kv_heads, head_dim, 0.2f, window}; }
  int width() const { return heads * head_dim; }
};
constexpr AttentionCase kCases[] = {{9, 3, 64, 0}, {4, 1, 256, 0}, {4, 2, 32, 0},
                                    {4, 4, 16, 0}, {9, 3, 64, 20}, {2, 1, 48, 5}};

std::vector<float> attend(const KernelTable& kernel, const AttentionShape& shape,
                          const RowBatch& batch, const KvLayerView& view, const float* q,
                          int width) {
  std::vector<float> out(static_cast<size_t>(batch.rows()) * width);
  std::vector<float> scratch(attention_scratch_floats(shape, batch, batch.rows()), NAN);
  const int group = shape.heads / shape.kv_heads;
  for (int head = 0; head < shape.heads; head += group) {
    kernel.attention(shape, batch, view, head, head + group, 0, batch.rows(), q, width, out.data(),
                     width, scratch.data());
  }
  return out;
}

struct Attention {
  const KernelTable* kernel;
  KvFormat format;
};

class EveryAttention : public ::testing::TestWithParam<Attention> {
 protected:
  const KernelTable& kernel() const { return *GetParam().kernel; }
  Cache cache(const AttentionCase& c, int slots) {
    return Cache(random, {c.kv_heads, c.head_dim, slots, GetParam().format});
  }
  Random random{7};
};

TEST_P(EveryAttention, HasTheSameBitsOverTreesChainsAndWindows) {
  for (const AttentionCase& c : kCases) {
    for (const int context : {0, 1, 37, 128}) {
      for (const int rows : {1, 2, 7, 16, 33}) {
        for (const bool chain : {false, true}) {
          const TreeBatch tree(random, rows, context, 192, chain, rows % 2 == 0);
          const Cache kv = cache(c, 192);
          // The wide ones have weights that vanish, and tiles of nothing else.
          const float spread = rows == 7 ? 60.0f : 1.0f;
          const std::vector<float> q =
              random_floats(random, static_cast<size_t>(rows) * c.width(), spread);
          const auto expected =
              attend(scalar(), c.shape(), tree.batch(), kv.view, q.data(), c.width());
          const auto seen = attend(kernel(), c.shape(), tree.batch(), kv.view, q.data(), c.width());
          EXPECT_TRUE(same_bits(expected, seen)) << context << " " << rows;
          EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](float x) { return x == x; }));
        }
      }
    }
  }
}

TEST_P(EveryAttention, GivesARowTheSameBitsAloneAndWhereverItsSlotsLie) {
  for (const AttentionCase& c : kCases) {
    for (const bool chain : {false, true}) {
      const int rows = 64, context = 70, slots = 160;
      const TreeBatch tree(random, rows, context, slots, chain, false);
      const Cache kv = cache(c, slots);
      const std::vector<float> q = random_floats(random, static_cast<size_t>(rows) * c.width());
      const auto together = attend(kernel(), c.shape(), tree.batch(), kv.view, q.data(), c.width());
      for (int row = 0; row < rows; ++row) {
        const auto alone = attend(kernel(), c.shape(), tree.single(row), kv.view,
                                  &q[static_cast<size_t>(row) * c.width()], c.width());
        EXPECT_EQ(0, std::memcmp(alone.data(), &together[static_cast<size_t>(row) * c.width()],
                                 c.width() * sizeof(float)))
            << row;
      }
      // The same contents under other slot numbers: any, and all in order but not from 0.
      std::vector<int32_t> moved(slots);
      for (int i = 0; i < slots; ++i) moved[i] = i;
      for (const int turn : {0, 5}) {
        if (turn == 0) {
          std::shuffle(moved.begin(), moved.end(), random);
        } else {
          for (int i = 0; i < slots; ++i) moved[i] = (i + turn) % slots;
        }
        const Cache elsewhere(kv, moved);
        TreeBatch renamed = tree;
        for (auto* list : {&renamed.slots, &renamed.context, &renamed.paths}) {
          for (int32_t& slot : *list) slot = moved[slot];
        }
        const auto there =
            attend(kernel(), c.shape(), renamed.batch(), elsewhere.view, q.data(), c.width());
        EXPECT_TRUE(same_bits(together, there));
      }
    }
  }
}

TEST_P(EveryAttention, GivesARowTheSameBitsInABatchOfAnyWidth) {
  const AttentionCase c = kCases[2];
  const TreeBatch tree(random, 64, 150, 224, false, true);
  const Cache kv = cache(c, 224);
  const std::vector<float> q = random_floats(random, static_cast<size_t>(64) * c.width());
  const auto all = attend(kernel(), c.shape(), tree.batch(), kv.view, q.data(), c.width());
  for (int rows = 1; rows <= 64; ++rows) {
    const RowBatch whole = tree.batch();
    const RowBatch some{whole.tokens.first(rows),   whole.positions.first(rows),
                        whole.slots.first(rows),    whole.context_slots,
                        whole.path_slots,           whole.path_begin.first(rows),
                        whole.path_end.first(rows), whole.output_rows.first(rows)};
    const auto seen = attend(kernel(), c.shape(), some, kv.view, q.data(), c.width());
    EXPECT_EQ(0, std::memcmp(seen.data(), all.data(), seen.size() * sizeof(float))) << rows;
  }
}

TEST_P(EveryAttention, DoesNotCareHowMuchOfASequenceIsCommittedNorWhoComputesWhichHead) {
  for (const AttentionCase& c : {kCases[0], kCases[4]}) {
    const int length = 150;
    const Cache kv = cache(c, 160);
    const std::vector<float> q = random_floats(random, c.width());
    std::vector<int32_t> slots(length);
    for (int i = 0; i < length; ++i) slots[i] = i + 3;
    std::vector<float> first;
    for (int committed = 0; committed < length; ++committed) {
      const std::vector<int32_t> one = {0}, position = {length - 1}, last = {slots.back()},
                                 begin = {0}, end = {length - committed};
      const RowBatch batch{one,
                           position,
                           last,
                           std::span(slots).first(committed),
                           std::span(slots).subspan(committed),
                           begin,
                           end,
                           one};
      const auto out = attend(kernel(), c.shape(), batch, kv.view, q.data(), c.width());
      if (committed == 0) first = out;
      EXPECT_TRUE(same_bits(first, out)) << committed;

      std::vector<float> apart(c.width());
      std::vector<float> scratch(attention_scratch_floats(c.shape(), batch, 1), NAN);
      for (int head = 0; head < c.heads; ++head) {
        kernel().attention(c.shape(), batch, kv.view, head, head + 1, 0, 1, q.data(), c.width(),
                           apart.data(), c.width(), scratch.data());
      }
      EXPECT_TRUE(same_bits(first, apart)) << committed;
    }
  }
}

TEST_P(EveryAttention, StoresKeysAndValuesAsTheScalarTwinDoes) {
  for (const int head_dim : {16, 32, 48, 64, 256}) {
    const KvLayout layout{2, head_dim, 32, GetParam().format};
    const auto expected = KvStore::create(1, 2, head_dim, 32, layout.format).value();
    const auto seen = KvStore::create(1, 2, head_dim, 32, layout.format).value();
    for (int slot = 0; slot < 32; ++slot) {
      std::vector<float> k = random_floats(random, head_dim), v = random_floats(random, head_dim);
      if (slot == 7) std::fill(v.begin(), v.end(), 0.0f);
      if (slot == 8) std::fill(k.begin(), k.end(), 1e-39f);
      for (int head = 0; head < 2; ++head) {
        scalar().store_kv(expected->layer(0), head, slot, k.data(), v.data());
        kernel().store_kv(seen->layer(0), head, slot, k.data(), nullptr);
        kernel().store_kv(seen->layer(0), head, slot, nullptr, v.data());
      }
    }
    EXPECT_TRUE(same_contents(*expected, *seen)) << head_dim;
  }
}

template <KvFormat kFormat>
std::vector<Attention> every_table() {
  std::vector<Attention> all;
  for (const KernelTable* table : runnable_kernels()) all.push_back({table, kFormat});
  return all;
}
const auto table_of = [](const auto& info) { return table_name(*info.param.kernel); };
INSTANTIATE_TEST_SUITE_P(Float16, EveryAttention,
                         ::testing::ValuesIn(every_table<KvFormat::kFloat16>()), table_of);
INSTANTIATE_TEST_SUITE_P(Int8, EveryAttention, ::testing::ValuesIn(every_table<KvFormat::kInt8>()),
                         table_of);

// What a cache holds, in double.
struct Stored {
  const KvLayerView& view;

  double key(int head, int slot, int dim) const {
    const KvLayout& layout = view.layout;
    if (layout.format == KvFormat::kFloat16) {
      return half_to_float(view.keys[layout.key_offset(head, slot, dim)]);
    }
    const Int8Head of = view.int8_head(head);
    return (of.key_codes[layout.key_code(slot, dim)] - 128) *
           static_cast<double>(of.key_scales[layout.key_scale(slot, dim / kKeyGroup)]);
  }
  double value(int head, int slot, int dim) const {
    const KvLayout& layout = view.layout;
    if (layout.format == KvFormat::kFloat16) {
      return half_to_float(view.values[layout.value_offset(head, slot, dim)]);
    }
    const Int8Head of = view.int8_head(head);
    return of.value_codes[layout.value_code(slot, dim)] *
           static_cast<double>(of.value_scales[slot]);
  }
};

// A query vector as int8 attention takes it: 8 bits in groups of 32.
std::vector<double> rounded_query(const float* q, int head_dim) {
  std::vector<double> out(head_dim);
  for (int d = 0; d < head_dim; ++d) {
    const int begin = d / kKeyGroup * kKeyGroup;
    float largest = 0.0f;
    for (int i = begin; i < std::min(begin + kKeyGroup, head_dim); ++i) {
      largest = std::max(largest, std::fabs(q[i]));
    }
    out[d] = std::nearbyint(q[d] * (127.0f / largest)) * (largest / 127.0);
  }
  return out;
}

TEST(ScalarAttention, IsWhatTheDefinitionSays) {
  Random random(5);
  for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kInt8}) {
    for (const AttentionCase& c : kCases) {
      const int rows = 12, context = 100;
      const TreeBatch tree(random, rows, context, 128, false, true);
      const Cache cache(random, {c.kv_heads, c.head_dim, 128, format});
      const Stored stored{cache.view};
      const std::vector<float> q = random_floats(random, static_cast<size_t>(rows) * c.width());
      const auto out = attend(scalar(), c.shape(), tree.batch(), cache.view, q.data(), c.width());
      for (int row = 0; row < rows; ++row) {
        std::vector<int32_t> seen(tree.context);
        seen.insert(seen.end(), tree.paths.begin() + tree.begin[row],
                    tree.paths.begin() + tree.end[row]);
        const int position = tree.positions[row];
        for (int head = 0; head < c.heads; ++head) {
          const int kv_head = head / (c.heads / c.kv_heads);
          const float* exact = &q[static_cast<size_t>(row) * c.width() + head * c.head_dim];
          const std::vector<double> query = format == KvFormat::kInt8
                                                ? rounded_query(exact, c.head_dim)
                                                : std::vector<double>(exact, exact + c.head_dim);
          std::vector<double> weight(seen.size());
          double total = 0;
          for (size_t j = 0; j < seen.size(); ++j) {
            if (c.window > 0 && static_cast<int>(j) <= position - c.window) continue;
            double score = 0;
            for (int d = 0; d < c.head_dim; ++d)
              score += query[d] * stored.key(kv_head, seen[j], d);
            weight[j] = std::exp(score * c.shape().scale);
            total += weight[j];
          }
          // int8: a weight times its value's scale is rounded to 1/127 of the tile's largest.
          std::vector<double> half_step(seen.size());
          for (size_t j = 0; format == KvFormat::kInt8 && j < seen.size(); ++j) {
            const float* scales = cache.view.int8_head(kv_head).value_scales;
            double& largest = half_step[j / kAttentionTile];
            largest = std::max(largest, weight[j] / total * scales[seen[j]] / 254.0);
          }
          for (int d = 0; d < c.head_dim; ++d) {
            double expected = 0, error = 2e-5;
            for (size_t j = 0; j < seen.size(); ++j) {
              const double value = stored.value(kv_head, seen[j], d);
              expected += weight[j] / total * value;
              if (format == KvFormat::kInt8) {
                error += half_step[j / kAttentionTile] * std::fabs(value) /
                         std::max(1e-30f, cache.view.int8_head(kv_head).value_scales[seen[j]]);
              }
            }
            EXPECT_NEAR(expected, out[row * c.width() + head * c.head_dim + d], error);
          }
        }
      }
    }
  }
}

TEST(ScalarAttention, Float16StoresTheNearestHalf) {
  Random random(3);
  const Cache cache(random, {2, 32, 32});
  const Stored stored{cache.view};
  for (int d = 0; d < 32; ++d) {
    const size_t at = cache.view.layout.value_offset(1, 19, d);
    EXPECT_EQ(half_to_float(float_to_half(cache.keys[at])), stored.key(1, 19, d));
    EXPECT_EQ(half_to_float(float_to_half(cache.values[at])), stored.value(1, 19, d));
  }
}

TEST(ScalarAttention, Int8StoresTheNearestOf255Levels) {
  Random random(3);
  const KvLayout layout{2, 80, 32, KvFormat::kInt8};
  const Cache cache(random, layout);
  const Stored stored{cache.view};
  const auto largest = [&](const std::vector<float>& x, int slot, int begin, int end) {
    float most = 0.0f;
    for (int d = begin; d < end; ++d) {
      most = std::max(most, std::fabs(x[layout.value_offset(1, slot, d)]));
    }
    return most;
  };
  for (int slot = 0; slot < 32; ++slot) {
    const float of_value = largest(cache.values, slot, 0, 80);
    for (int d = 0; d < 80; ++d) {
      const int group = d / kKeyGroup * kKeyGroup;
      const float of_key = largest(cache.keys, slot, group, std::min(group + kKeyGroup, 80));
      const size_t at = layout.value_offset(1, slot, d);
      EXPECT_NEAR(cache.keys[at], stored.key(1, slot, d), of_key / 253.9);
      EXPECT_NEAR(cache.values[at], stored.value(1, slot, d), of_value / 253.9);
    }
  }
}

TEST(KvCache, CopyingASlotMovesItsBitsAndNothingElse) {
  Random random(11);
  for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kInt8}) {
    const Cache cache(random, {3, 48, 64, format});
    Cache expected = Cache(cache, [] {
      std::vector<int32_t> in_order(64);
      for (int i = 0; i < 64; ++i) in_order[i] = i;
      return in_order;
    }());
    for (const auto& [from, to] : {std::pair{37, 3}, {63, 62}, {5, 5}, {0, 16}}) {
      for (int head = 0; head < 3; ++head) {
        const size_t at = expected.view.layout.value_offset(head, from, 0);
        const size_t target = expected.view.layout.value_offset(head, to, 0);
        std::copy_n(expected.keys.begin() + at, 48, expected.keys.begin() + target);
        std::copy_n(expected.values.begin() + at, 48, expected.values.begin() + target);
        scalar().store_kv(expected.view, head, to, &expected.keys[target],
                          &expected.values[target]);
      }
      cache.store->copy_slot(from, to);
      EXPECT_TRUE(same_contents(*expected.store, *cache.store)) << from << " to " << to;
    }
  }
}

}  // namespace
}  // namespace sapwood::testing
