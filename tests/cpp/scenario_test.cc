// What a prompt is told to ask for. Features are checked against a twin, and the share of unseen
// prompts that is told right, in tests/python/test_scenario.py.
#include "engine/scenario.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "measure/allocation_counter.h"
#include "sapwood/sapwood.h"

namespace sapwood {
namespace {

constexpr std::string_view kCode = "Write a Python function that sorts a list:\ndef sort(items):";

TEST(Scenario, NamesGoBothWays) {
  for (int s = 0; s < kScenarios; ++s) {
    const auto scenario = static_cast<Scenario>(s);
    EXPECT_EQ(parse_scenario(scenario_name(scenario)), scenario);
  }
  EXPECT_EQ(parse_scenario("auto"), std::nullopt);
}

TEST(Scenario, ClearCasesAreToldApart) {
  const auto told = [](std::string_view prompt) {
    return guess_scenario(ScenarioFeatures(prompt)).scenario;
  };
  EXPECT_EQ(told(kCode), Scenario::kStructure);
  EXPECT_EQ(told("Anna has 12 apples and gives 5 of them away. How many are left?"),
            Scenario::kReasoning);
  EXPECT_EQ(told("Write a poem about the sea in winter."), Scenario::kCreativity);
  EXPECT_EQ(told("What is the capital of France, and who built the tower there?"),
            Scenario::kKnowledge);
}

TEST(Scenario, AnyBytesAreTakenWithoutAllocating) {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text.resize(random() % 3000);
    for (char& c : text) c = static_cast<char>(random());
    const uint64_t before = allocations();
    const ScenarioGuess guess = guess_scenario(ScenarioFeatures(text));
    EXPECT_EQ(allocations(), before);
    double all = 0;
    for (const double probability : guess.probability) all += probability;
    EXPECT_NEAR(all, 1, 1e-9);
  }
}

TEST(Scenario, OfALongPromptBeginningAndEndCount) {
  std::string text(kCode);
  text += std::string(2'000'000, '.');
  const ScenarioFeatures features(text);
  const ScenarioFeatures other(text.substr(0, 1'000'000) + '+' + text.substr(1'000'001));
  EXPECT_EQ(features.present(), other.present());
  EXPECT_NE(features.present(), ScenarioFeatures(text + "Now as a poem!").present());
}

TEST(Scenario, TheCInterfaceSetsWhatTheTemplateSays) {
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
  const sapwood_generate_options before = options;
  const char* scenario = nullptr;
  const auto apply = [&](const char* profile) {
    return sapwood_generate_options_profile(&options, profile, kCode.data(), kCode.size(),
                                            &scenario);
  };
  ASSERT_EQ(apply("off"), SAPWOOD_OK);
  EXPECT_STREQ(scenario, "");
  EXPECT_EQ(options.chain_length, before.chain_length);
  ASSERT_EQ(apply("auto"), SAPWOOD_OK);
  EXPECT_STREQ(scenario, "structure");
  EXPECT_EQ(options.chain_length, template_of(Scenario::kStructure).chain_length);
  EXPECT_EQ(options.fixed_nodes, template_of(Scenario::kStructure).fixed_nodes);
  ASSERT_EQ(apply("knowledge"), SAPWOOD_OK);
  EXPECT_STREQ(scenario, "knowledge");
  EXPECT_EQ(options.chain_length, template_of(Scenario::kKnowledge).chain_length);
  EXPECT_EQ(options.beta, template_of(Scenario::kKnowledge).beta);
  EXPECT_EQ(apply("poetry"), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("poetry"), std::string::npos);
  EXPECT_EQ(sapwood_generate_options_profile(nullptr, "auto", nullptr, 0, nullptr),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_generate_options_profile(&options, "auto", nullptr, 1, nullptr),
            SAPWOOD_INVALID_ARGUMENT);
  options.size = sizeof(size_t);
  EXPECT_EQ(apply("auto"), SAPWOOD_INVALID_ARGUMENT) << "an older program's structure";
}

}  // namespace
}  // namespace sapwood
