#include "kernels/row_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernel_fixtures.h"
#include "kernels/kernels.h"

namespace sapwood {
namespace {

using testing::Activations;
using testing::PackedMatrix;
using testing::random_floats;

constexpr RowBlock kBlocks[] = {{1, 2}, {2, 2}, {3, 2}, {4, 2}, {8, 1}};

// What the plan's blocks cost for so many rows; checks that they make them up exactly.
double cost_of(const RowPlan& plan, std::span<const RowBlock> blocks, std::span<const double> costs,
               int rows) {
  double total = 0;
  while (rows > 0) {
    const int kind = plan.block(rows);
    EXPECT_LT(kind, static_cast<int>(blocks.size()));
    EXPECT_LE(blocks[kind].rows, rows);
    total += costs[kind];
    rows -= blocks[kind].rows;
  }
  return total;
}

// The least that any sequence of blocks costs, by trying all.
double least(std::span<const RowBlock> blocks, std::span<const double> costs, int rows) {
  if (rows == 0) return 0;
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].rows > rows) continue;
    best = std::min(best, costs[i] + least(blocks, costs, rows - blocks[i].rows));
  }
  return best;
}

TEST(RowPlan, CostsNoMoreThanAnyOtherWayToMakeUpTheRows) {
  testing::Random random(3);
  std::uniform_real_distribution<double> cost(0.2, 8.0);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<double> costs;
    for (size_t i = 0; i < std::size(kBlocks); ++i) costs.push_back(cost(random));
    const RowPlan plan = RowPlan::cheapest(kBlocks, costs);
    for (int rows = 1; rows <= 14; ++rows) {
      EXPECT_NEAR(least(kBlocks, costs, rows), cost_of(plan, kBlocks, costs, rows), 1e-9);
    }
  }
}

TEST(RowPlan, TakesTheWidestBlockWhereTwoCostTheSame) {
  const RowPlan plan = RowPlan::cheapest(kBlocks, std::vector<double>{1, 2, 3, 4, 8});
  for (const int rows : {1, 2, 3, 4, 8, 12, 64, 500}) {
    const int widest = rows >= 8 ? 4 : std::min(rows, 4) - 1;
    EXPECT_EQ(widest, plan.block(rows)) << rows;
  }
}

TEST(RowPlan, AvoidsABlockThatIsSlowerThanTwoSmallerOnes) {
  const RowPlan plan = RowPlan::cheapest(kBlocks, std::vector<double>{1.0, 1.2, 1.5, 1.8, 5.0});
  EXPECT_EQ(3, plan.block(8));
  EXPECT_EQ(3, plan.block(64));
  EXPECT_EQ(2, plan.block(3));
}

TEST(RowPlan, MeasuredOnThisMachineMakesUpEveryNumberOfRowsForEveryTableAndFormat) {
  for (const KernelTable* table : runnable_kernels()) {
    ASSERT_FALSE(table->row_blocks.empty());
    EXPECT_EQ(1, table->row_blocks.front().rows);
    for (const char* name :
         {"int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32"}) {
      const LinearFormat format = *parse_linear_format(name);
      const RowPlan& plan = measured_row_plan(*table, format);
      EXPECT_EQ(&plan, &measured_row_plan(*table, format)) << "measured twice";
      const std::vector<double> costs(table->row_blocks.size(), 1.0);
      for (int rows = 1; rows <= 80; ++rows) cost_of(plan, table->row_blocks, costs, rows);
    }
  }
}

TEST(RowPlan, ChangesNoBitOfALinearWhateverItSays) {
  testing::Random random(5);
  const int outputs = 96, inputs = 256, most = 19;
  for (const KernelTable* table : runnable_kernels()) {
    for (const char* name : {"int4_g32_min", "int4_g128", "int8_g32"}) {
      PackedMatrix matrix(random, *parse_linear_format(name), outputs, inputs);
      const std::vector<float> x = random_floats(random, most * inputs);
      const Activations activations(*table, x, most, inputs);
      for (int rows = 1; rows <= most; ++rows) {
        std::vector<float> expected(rows * outputs), seen(expected.size());
        const auto run = [&](const RowPlan* plan, std::vector<float>& y) {
          matrix.weights.plan = plan;
          table->linear(matrix.weights, activations.rows, rows, 0, matrix.weights.panels(), false,
                        y.data(), outputs);
        };
        run(nullptr, expected);
        // kBlocks' plans too: made for another table, they may name blocks that this one lacks.
        for (const std::span<const RowBlock> blocks :
             {table->row_blocks, std::span<const RowBlock>(kBlocks)}) {
          for (size_t only = 0; only < blocks.size(); ++only) {
            const RowPlan plan = RowPlan::single(blocks, static_cast<int>(only));
            run(&plan, seen);
            EXPECT_EQ(0, std::memcmp(expected.data(), seen.data(), seen.size() * sizeof(float)))
                << table->name << " " << name << " rows " << rows << " block " << only;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sapwood
