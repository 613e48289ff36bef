// Double buffering over two devices that share no semaphore: one that drafts, and one that
// verifies.
#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "vulkan/double_buffer.h"
#include "vulkan_devices.h"

namespace sapwood::vulkan {
namespace {

constexpr DoubleBufferOptions kLooksFirst = {
    .steps = 60, .target_size = 2048, .draft_size = 1024, .looks_first = true};

class VulkanDoubleBuffer : public VulkanDevices {
 protected:
  void SetUp() override {
    VulkanDevices::SetUp();
    if (devices_.size() != 1) return;
    std::printf("one driver: draft and target have a logical device of it each\n");
    devices_.push_back(Device::create(0).value());
  }
};

// Step t: the target makes state t of state t - 1, and the draft has said what it would be. While
// the target is at it the draft says what state t + 1 would be, had it been right; that is kept
// where it was, and done again where not. The target is let go only when the draft has looked
// ahead: were there any other wait between them than for the decision, no step would end.
TEST_F(VulkanDoubleBuffer, TheDraftOnOneGoesAheadWhileTheTargetOnAnotherVerifies) {
  for (const bool swapped : {false, true}) {
    const std::shared_ptr<Device>& draft = swapped ? devices_.back() : devices_.front();
    const std::shared_ptr<Device>& target = swapped ? devices_.front() : devices_.back();
    std::printf("draft on %s, target on %s\n", draft->name().c_str(), target->name().c_str());
    const Result<DoubleBufferCost> cost = double_buffer_cost(draft, target, kLooksFirst);
    ASSERT_TRUE(cost.ok()) << cost.status().message();
    EXPECT_TRUE(cost->right);
    EXPECT_EQ(cost->discarded, (kLooksFirst.steps - 1) / 3);
    EXPECT_EQ(cost->kept, kLooksFirst.steps - 1 - cost->discarded);
    EXPECT_GT(cost->hidden_draft_share(kLooksFirst.steps), 0);
    std::printf("%d looks ahead kept, %d discarded\n", cost->kept, cost->discarded);
  }
}

TEST_F(VulkanDoubleBuffer, InTurnsNothingIsHiddenAndTheStateIsTheSame) {
  DoubleBufferOptions options = kLooksFirst;
  options.looks_first = options.ahead = false;
  const Result<DoubleBufferCost> cost =
      double_buffer_cost(devices_.front(), devices_.back(), options);
  ASSERT_TRUE(cost.ok()) << cost.status().message();
  EXPECT_TRUE(cost->right);
  EXPECT_EQ(cost->kept + cost->discarded, 0);
  EXPECT_EQ(cost->hidden_draft_share(options.steps), 0);
}

// The target waits for a look that never comes: what a lost device is to the other one.
TEST_F(VulkanDoubleBuffer, ADeviceThatDoesNotAnswerEndsTheStepsAndNobodyHangs) {
  DoubleBufferOptions options = kLooksFirst;
  options.ahead = false;
  options.wait_seconds = 0.05;
  const Status status = double_buffer_cost(devices_.front(), devices_.back(), options).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message(), "the device that drafts does not answer");
}

TEST_F(VulkanDoubleBuffer, SizesThatNoShaderTakesAreRefused) {
  for (const uint32_t size : {0u, 100u, 1u << 24}) {
    const auto cost = double_buffer_cost(devices_.front(), devices_.back(), {.target_size = size});
    EXPECT_EQ(cost.status().code(), Code::kInvalidArgument) << size;
  }
}

}  // namespace
}  // namespace sapwood::vulkan
