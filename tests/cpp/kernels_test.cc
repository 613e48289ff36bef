// Every kernel table against the scalar twin, bit for bit, and the scalar twin against plain double
// arithmetic.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel_fixtures.h"
#include "kernels/embedding.h"

namespace sapwood::testing {
namespace {

const KernelTable& scalar() { return *runnable_kernels().front(); }

constexpr LinearFormat kFormats[] = {
    {4, 32, false}, {4, 32, true}, {4, 128, false}, {4, 128, true}, {8, 32, false}};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class EveryKernelTable : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& kernel() const { return *GetParam(); }
  Random random{7};
};

TEST_P(EveryKernelTable, QuantisesRowsToTheSameBits) {
  const int rows = 5, columns = 192;
  std::vector<float> x = random_floats(random, rows * columns, 3.0f);
  std::fill(x.begin() + 32, x.begin() + 64, 0.0f);  // a group of zeros
  const Activations expected(scalar(), x, rows, columns), seen(kernel(), x, rows, columns);
  EXPECT_EQ(expected.codes, seen.codes);
  EXPECT_EQ(expected.sums, seen.sums);
  EXPECT_TRUE(same_bits(expected.scales, seen.scales));
  EXPECT_TRUE(same_bits(expected.scaled_sums, seen.scaled_sums));
}

TEST_P(EveryKernelTable, ComputesLinearsToTheSameBitsForEveryFormatAndWidth) {
  for (const LinearFormat& format : kFormats) {
    for (const auto& [outputs, inputs] : {std::pair{40, 256}, std::pair{16, 128}, {100, 384}}) {
      const PackedMatrix matrix(random, format, outputs, inputs);
      for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 23, 24, 31, 32, 40, 64}) {
        const std::vector<float> x = random_floats(random, static_cast<size_t>(rows) * inputs);
        const Activations activations(scalar(), x, rows, inputs);
        const std::vector<float> start = random_floats(random, static_cast<size_t>(rows) * outputs);
        for (const bool accumulate : {false, true}) {
          std::vector<float> expected = start, seen = start;
          scalar().linear(matrix.weights, activations.rows, rows, 0, matrix.weights.panels(),
                          accumulate, expected.data(), outputs);
          kernel().linear(matrix.weights, activations.rows, rows, 0, matrix.weights.panels(),
                          accumulate, seen.data(), outputs);
          EXPECT_TRUE(same_bits(expected, seen))
              << linear_format_name(format) << " rows " << rows << " outputs " << outputs;
        }
      }
    }
  }
}

TEST_P(EveryKernelTable, GivesARowTheSameLinearBitsWhateverStandsBesideIt) {
  for (const LinearFormat& format : kFormats) {
    const int outputs = 64, inputs = 256;
    const PackedMatrix matrix(random, format, outputs, inputs);
    const std::vector<float> x = random_floats(random, 64 * inputs);
    std::vector<float> alone(64 * outputs);
    for (int row = 0; row < 64; ++row) {
      const std::vector<float> one(x.begin() + row * inputs, x.begin() + (row + 1) * inputs);
      const Activations activations(kernel(), one, 1, inputs);
      kernel().linear(matrix.weights, activations.rows, 1, 0, matrix.weights.panels(), false,
                      &alone[row * outputs], outputs);
    }
    for (int rows = 1; rows <= 64; ++rows) {
      const std::vector<float> some(x.begin(), x.begin() + rows * inputs);
      const Activations activations(kernel(), some, rows, inputs);
      std::vector<float> y(rows * outputs);
      // Two halves of the panels, as two threads would.
      kernel().linear(matrix.weights, activations.rows, rows, 0, 1, false, y.data(), outputs);
      kernel().linear(matrix.weights, activations.rows, rows, 1, matrix.weights.panels(), false,
                      y.data(), outputs);
      EXPECT_EQ(0, std::memcmp(alone.data(), y.data(), y.size() * sizeof(float))) << rows;
    }
  }
}

TEST_P(EveryKernelTable, ComputesGatedLinearsToTheSameBits) {
  for (const LinearFormat& format : kFormats) {
    const int units = 48, inputs = 128;
    const PackedMatrix matrix(random, format, 2 * units, inputs);
    for (const int rows : {1, 3, 8, 17}) {
      const std::vector<float> x = random_floats(random, rows * inputs, 4.0f);
      const Activations activations(scalar(), x, rows, inputs);
      for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
        std::vector<float> expected(rows * units), seen(rows * units);
        scalar().gated_linear(matrix.weights, activations.rows, rows, 0, units / kPanel, activation,
                              expected.data(), units);
        kernel().gated_linear(matrix.weights, activations.rows, rows, 0, units / kPanel, activation,
                              seen.data(), units);
        EXPECT_TRUE(same_bits(expected, seen)) << rows;
      }
    }
  }
}

TEST_P(EveryKernelTable, NormsRotatesAndNormalisesToTheSameBits) {
  const int rows = 3, columns = 576;
  const std::vector<float> x = random_floats(random, rows * columns);
  const std::vector<float> weight = random_floats(random, columns);
  std::vector<float> expected(x.size()), seen(x.size());
  scalar().rms_norm(x.data(), columns, weight.data(), 1e-5f, rows, columns, expected.data(),
                    columns);
  kernel().rms_norm(x.data(), columns, weight.data(), 1e-5f, rows, columns, seen.data(), columns);
  EXPECT_TRUE(same_bits(expected, seen));

  const std::vector<float> rotary = random_floats(random, 64);
  std::vector<float> a(x.begin(), x.begin() + 64), b = a;
  scalar().rotate(a.data(), rotary.data(), 64);
  kernel().rotate(b.data(), rotary.data(), 64);
  EXPECT_TRUE(same_bits(a, b));

  for (const int n : {1, 7, 16, 257, 1000}) {
    const std::vector<float> logits = random_floats(random, n, 10.0f);
    std::vector<float> p(n), q(n);
    const float z = scalar().log_softmax(logits.data(), n, p.data());
    EXPECT_EQ(z, kernel().log_softmax(logits.data(), n, q.data()));
    EXPECT_TRUE(same_bits(p, q)) << n;
  }
}

struct AttentionCase {
  int heads, kv_heads, head_dim, window;
};
constexpr AttentionCase kAttentionCases[] = {{9, 3, 64, 0}, {4, 1, 256, 0}, {4, 2, 32, 0},
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

TEST_P(EveryKernelTable, AttendsToTheSameBitsOverTreesChainsAndWindows) {
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionShape shape{c.heads, c.kv_heads, c.head_dim, 0.2f, c.window};
    const int width = c.heads * c.head_dim;
    for (const int context : {0, 1, 37, 128}) {
      for (const int rows : {1, 2, 7, 16, 33}) {
        for (const bool chain : {false, true}) {
          const TreeBatch tree(random, rows, context, 192, chain, rows % 2 == 0);
          const Cache cache(random, {c.kv_heads, c.head_dim, 192});
          const std::vector<float> q = random_floats(random, static_cast<size_t>(rows) * width);
          const auto expected = attend(scalar(), shape, tree.batch(), cache.view, q.data(), width);
          const auto seen = attend(kernel(), shape, tree.batch(), cache.view, q.data(), width);
          EXPECT_TRUE(same_bits(expected, seen)) << context << " " << rows;
        }
      }
    }
  }
}

TEST_P(EveryKernelTable, GivesARowTheSameAttentionBitsAloneAndWhereverItsSlotsLie) {
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionShape shape{c.heads, c.kv_heads, c.head_dim, 0.2f, c.window};
    const int width = c.heads * c.head_dim;
    for (const bool chain : {false, true}) {
      const int rows = 64, context = 70, slots = 160;
      const TreeBatch tree(random, rows, context, slots, chain, false);
      const Cache cache(random, {c.kv_heads, c.head_dim, slots});
      const std::vector<float> q = random_floats(random, rows * width);
      const auto together = attend(kernel(), shape, tree.batch(), cache.view, q.data(), width);
      for (int row = 0; row < rows; ++row) {
        const auto alone =
            attend(kernel(), shape, tree.single(row), cache.view, &q[row * width], width);
        EXPECT_EQ(0, std::memcmp(alone.data(), &together[row * width], width * sizeof(float)))
            << row;
      }
      // The same contents under other slot numbers.
      std::vector<int32_t> moved(slots);
      for (int i = 0; i < slots; ++i) moved[i] = i;
      std::shuffle(moved.begin(), moved.end(), random);
      Cache scattered = cache;
      scattered.view.keys = scattered.keys.data(), scattered.view.values = scattered.values.data();
      for (int head = 0; head < c.kv_heads; ++head) {
        for (int slot = 0; slot < slots; ++slot) {
          for (int d = 0; d < c.head_dim; ++d) {
            const KvLayout& layout = cache.view.layout;
            scattered.keys[layout.key_offset(head, moved[slot], d)] =
                cache.keys[layout.key_offset(head, slot, d)];
            scattered.values[layout.value_offset(head, moved[slot], d)] =
                cache.values[layout.value_offset(head, slot, d)];
          }
        }
      }
      TreeBatch renamed = tree;
      for (auto* list : {&renamed.slots, &renamed.context, &renamed.paths}) {
        for (int32_t& slot : *list) slot = moved[slot];
      }
      const auto there = attend(kernel(), shape, renamed.batch(), scattered.view, q.data(), width);
      EXPECT_TRUE(same_bits(together, there));
    }
  }
}

TEST_P(EveryKernelTable, DoesNotCareHowMuchOfASequenceIsCommitted) {
  const AttentionShape shape{9, 3, 64, 0.125f, 0};
  const int length = 90;
  const Cache cache(random, {3, 64, 96});
  const std::vector<float> q = random_floats(random, 9 * 64);
  std::vector<int32_t> slots(length);
  for (int i = 0; i < length; ++i) slots[i] = i;
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
    const auto out = attend(kernel(), shape, batch, cache.view, q.data(), 9 * 64);
    if (committed == 0) first = out;
    EXPECT_TRUE(same_bits(first, out)) << committed;
  }
}

TEST_P(EveryKernelTable, StoresKeysAndValuesAsTheNearestHalf) {
  const KvLayout layout{2, 32, 32};
  Cache cache(random, layout);
  const std::vector<float> k = random_floats(random, 32), v = random_floats(random, 32);
  kernel().store_kv(cache.view, 1, 19, k.data(), v.data());
  for (int d = 0; d < 32; ++d) {
    EXPECT_EQ(float_to_half(k[d]), cache.keys[layout.key_offset(1, 19, d)]);
    EXPECT_EQ(float_to_half(v[d]), cache.values[layout.value_offset(1, 19, d)]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryKernelTable,
                         ::testing::ValuesIn(runnable_kernels().begin(), runnable_kernels().end()),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ScalarKernels, ComputeALinearAsItsDequantisedMatrixDoes) {
  Random random(3);
  for (const LinearFormat& format : kFormats) {
    const int outputs = 20, inputs = 256, rows = 3;
    const PackedMatrix matrix(random, format, outputs, inputs);
    const std::vector<float> x = random_floats(random, rows * inputs);
    const Activations activations(scalar(), x, rows, inputs);
    std::vector<float> y(rows * outputs);
    scalar().linear(matrix.weights, activations.rows, rows, 0, matrix.weights.panels(), false,
                    y.data(), outputs);
    for (int output = 0; output < outputs; ++output) {
      std::vector<float> weights(inputs);
      embed_token(matrix.weights, output, 1.0f, weights.data());
      for (int row = 0; row < rows; ++row) {
        double sum = 0, size = 0;
        for (int i = 0; i < inputs; ++i) {
          const double a = activations.codes[row * inputs + i] *
                           static_cast<double>(activations.scales[(row * inputs + i) / 32]);
          sum += a * weights[i];
          size += std::fabs(a * weights[i]);
        }
        EXPECT_NEAR(sum, y[row * outputs + output], 1e-5 * size) << linear_format_name(format);
      }
    }
  }
}

TEST(ScalarKernels, AttendAsTheDefinitionDoes) {
  Random random(5);
  for (const AttentionCase& c : kAttentionCases) {
    const AttentionShape shape{c.heads, c.kv_heads, c.head_dim, 0.2f, c.window};
    const int width = c.heads * c.head_dim, rows = 12, context = 40;
    const TreeBatch tree(random, rows, context, 64, false, true);
    const Cache cache(random, {c.kv_heads, c.head_dim, 64});
    const std::vector<float> q = random_floats(random, rows * width);
    const RowBatch batch = tree.batch();
    const auto out = attend(scalar(), shape, batch, cache.view, q.data(), width);
    for (int row = 0; row < rows; ++row) {
      std::vector<int32_t> seen(tree.context);
      seen.insert(seen.end(), tree.paths.begin() + tree.begin[row],
                  tree.paths.begin() + tree.end[row]);
      const int position = tree.positions[row];
      for (int head = 0; head < c.heads; ++head) {
        const int kv_head = head / (c.heads / c.kv_heads);
        std::vector<double> weight(seen.size());
        double total = 0;
        for (size_t j = 0; j < seen.size(); ++j) {
          if (c.window > 0 && static_cast<int>(j) <= position - c.window) continue;
          double score = 0;
          for (int d = 0; d < c.head_dim; ++d) {
            score += static_cast<double>(q[row * width + head * c.head_dim + d]) *
                     half_to_float(cache.keys[cache.view.layout.key_offset(kv_head, seen[j], d)]);
          }
          weight[j] = std::exp(score * 0.2);
          total += weight[j];
        }
        for (int d = 0; d < c.head_dim; ++d) {
          double expected = 0;
          for (size_t j = 0; j < seen.size(); ++j) {
            expected +=
                weight[j] / total *
                half_to_float(cache.values[cache.view.layout.value_offset(kv_head, seen[j], d)]);
          }
          EXPECT_NEAR(expected, out[row * width + head * c.head_dim + d], 2e-5);
        }
      }
    }
  }
}

TEST(ScalarKernels, ActivateAndNormaliseAccurately) {
  Random random(9);
  const std::vector<float> logits = random_floats(random, 301, 8.0f);
  std::vector<float> out(logits.size());
  scalar().log_softmax(logits.data(), static_cast<int>(logits.size()), out.data());
  double total = 0;
  for (const float value : out) total += std::exp(static_cast<double>(value));
  EXPECT_NEAR(1.0, total, 1e-5);
}

}  // namespace
}  // namespace sapwood::testing
