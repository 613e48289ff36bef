// What layers gave, kept: kernels/hidden_states.h, and a host's operators handing it over.
#include "kernels/hidden_states.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "measure/allocation_counter.h"
#include "operators/resources.h"

namespace sapwood {
namespace {

constexpr int kHidden = 2;
constexpr std::array kEmbedded = {1.f, 2.f, 3.f, 4.f};  // two rows
constexpr std::array kFirst = {5.f, 6.f, 7.f, 8.f};
constexpr std::array kSecond = {9.f, 10.f, 11.f, 12.f};

TEST(HiddenStates, KeepsTheRowsOfTheLayersChosen) {
  HiddenStates kept;
  ASSERT_TRUE(kept.choose(std::array{0, 2}, 2, 4, kHidden).ok());
  EXPECT_TRUE(kept.states().empty());
  kept.begin(2);
  kept.keep(0, kEmbedded.data(), 0, 1);
  kept.keep(0, kEmbedded.data(), 1, 2);
  kept.keep(1, kFirst.data(), 0, 2);
  kept.keep(2, kSecond.data(), 0, 2);
  const std::vector<float> states(kept.states().begin(), kept.states().end());
  EXPECT_EQ(states, (std::vector<float>{1, 2, 9, 10, 3, 4, 11, 12}));
}

TEST(HiddenStates, AWrongChoiceChangesNothing) {
  HiddenStates kept;
  ASSERT_TRUE(kept.choose(std::array{1}, 2, 4, kHidden).ok());
  for (const std::vector<int>& layers : {std::vector{3}, {-1}, {1, 1}, {2, 1}}) {
    EXPECT_EQ(kept.choose(layers, 2, 4, kHidden).code(), Code::kInvalidArgument);
    EXPECT_TRUE(kept.keeps(1));
  }
  ASSERT_TRUE(kept.choose({}, 2, 4, kHidden).ok());
  EXPECT_FALSE(kept.keeps(1));
}

TEST(HiddenStates, OperatorsHandThemOverInTurnAndAllocateNothing) {
  operators::Resources resources(1);
  ASSERT_TRUE(resources.hidden_states().choose(std::array{1}, 2, 2, kHidden).ok());
  const uint64_t before = allocations();
  for (const auto& first : {kFirst, kSecond}) {
    resources.begin_pass(2);
    resources.show(kEmbedded.data(), 2);
    resources.show(first.data(), 2);
    resources.show(kSecond.data(), 2);
    ASSERT_TRUE(resources.end_pass(2).ok());
    EXPECT_EQ(resources.hidden_states().states().front(), first.front());
  }
  EXPECT_EQ(allocations() - before, 0u);
}

TEST(HiddenStates, AGraphWithoutOurLayersIsNoticed) {
  operators::Resources resources(1);
  resources.begin_pass(2);
  EXPECT_TRUE(resources.end_pass(2).ok());  // nobody asked
  ASSERT_TRUE(resources.hidden_states().choose(std::array{1}, 2, 2, kHidden).ok());
  resources.begin_pass(2);
  resources.show(kEmbedded.data(), 2);
  const Status status = resources.end_pass(2);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.message().find("use --host native"), std::string::npos);
}

}  // namespace
}  // namespace sapwood
