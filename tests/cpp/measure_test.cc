#include <gtest/gtest.h>

#include "make_test_bundle.h"
#include "measure/machine.h"
#include "measure/model_cost.h"
#include "measure/random_model.h"
#include "model/native.h"

namespace sapwood {
namespace {

TEST(Measure, TheMachinesLimitsArePositive) {
  ThreadTeam team(2);
  const std::vector<uint8_t> memory(1 << 20);
  EXPECT_GT(read_bandwidth(memory, team), 0.0);
  EXPECT_GT(int8_peak(team), 0.0);
}

TEST(Measure, ACostCoversEveryLinearLayerOnce) {
  const auto path = write_test_bundle(test_bundle_options("gemma3"));
  ASSERT_TRUE(path.ok());
  auto opened = Bundle::open(path.value());
  ASSERT_TRUE(opened.ok());
  const auto bundle = std::make_shared<const Bundle>(std::move(opened).value());
  auto model = open_native_model(bundle, {2, 8});
  ASSERT_TRUE(model.ok());
  ModelCost cost(bundle, 2, 8, 32);

  const ModelSpec& spec = bundle->spec();
  const double layer =
      static_cast<double>(spec.hidden_size) *
      (spec.head_dim * (2 * spec.heads + 2 * spec.kv_heads) + 3 * spec.intermediate_size);
  EXPECT_EQ(layer * spec.layers + static_cast<double>(spec.vocabulary_size) * spec.hidden_size,
            cost.linear_multiplies());
  EXPECT_LE(cost.linear_bytes(), static_cast<double>(cost.weights().size()));
  EXPECT_GT(cost.linears(3).value(), 0.0);
  EXPECT_GT(cost.attention(8, 32).value(), 0.0);
  EXPECT_GT(cost.model(*model.value(), 8, 32).value(), 0.0);
  EXPECT_GT(cost.prefill(*model.value(), 30).value(), 0.0);
  EXPECT_FALSE(cost.model(*model.value(), 9, 16).ok()) << "more rows than it was made for";
  EXPECT_FALSE(cost.linears(9).ok());
  EXPECT_FALSE(cost.attention(8, 1000).ok());
}

TEST(Measure, AModelOfAKnownShapeRunsWithRandomWeights) {
  const auto bundle = random_model("smollm2-135m");
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  auto model = open_native_model(bundle.value(), {2, 4});
  ASSERT_TRUE(model.ok()) << model.status().message();
  ModelCost cost(bundle.value(), 2, 4, 16);
  EXPECT_GT(cost.model(*model.value(), 4, 16).value(), 0.0);
}

TEST(Measure, AnUnknownShapeIsRefusedWithTheNamesOfTheKnown) {
  const auto bundle = random_model("gpt-5");
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(std::string::npos, bundle.status().message().find("qwen2.5-1.5b"));
}

}  // namespace
}  // namespace sapwood
