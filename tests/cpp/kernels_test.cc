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

constexpr LinearFormat kFormats[] = {
    {4, 32, false}, {4, 32, true}, {4, 128, false}, {4, 128, true}, {8, 32, false}};

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

INSTANTIATE_TEST_SUITE_P(All, EveryKernelTable,
                         ::testing::ValuesIn(runnable_kernels().begin(), runnable_kernels().end()),
                         [](const auto& info) { return table_name(*info.param); });

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
