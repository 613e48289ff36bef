// Double buffering over two devices that share no semaphore: one that drafts, and one that
// verifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "sync/step_graph.h"
#include "vulkan_devices.h"

namespace sapwood::vulkan {
namespace {

constexpr uint32_t kCount = 2048;
constexpr uint64_t kSteps = 60;

// The text's state rises by one a step, as the draft expects, or by two.
float rise(uint64_t step) { return step % 3 == 0 ? 2 : 1; }

struct Side {
  Side(std::shared_ptr<Device> the_device, const UnifiedPool& pool,
       std::span<const TensorHandle> pieces)
      : device(std::move(the_device)) {
    const PoolMemory memory = PoolMemory::import(device, pool).value();
    for (const TensorHandle& piece : pieces) buffers.push_back(memory.bind(piece).value());
  }
  std::unique_ptr<ComputePass> add(size_t left, size_t right, size_t sums) const {
    const std::array<const Buffer*, 3> bound = {&buffers[left], &buffers[right], &buffers[sums]};
    return ComputePass::record(device, add_shader(), bound, std::as_bytes(std::span(&kCount, 1)),
                               kCount / 256)
        .value();
  }
  std::shared_ptr<Device> device;
  std::vector<Buffer> buffers;
};

// Step t: the target makes state t of state t - 1, and the draft has said what it would be. While
// the target is at it the draft says what state t + 1 would be, had it been right; that is kept
// where it was, and done again where not. The target is let go only when the draft has looked
// ahead: were there any other wait between them than for the decision, no step would end.
TEST_F(VulkanDevices, TheDraftOnOneGoesAheadWhileTheTargetOnAnotherVerifies) {
  if (devices_.size() == 1) {
    std::printf("one driver: draft and target have a logical device of it each\n");
    devices_.push_back(Device::create(0).value());
  }
  enum Piece : size_t { kOne, kRise, kState, kOtherState, kGuess, kOtherGuess, kPieces };
  for (const bool swapped : {false, true}) {
    UnifiedPool pool =
        UnifiedPool::create(MemoryKind::kHost, 1 << 18, {.guard_pages = false}).value();
    std::vector<TensorHandle> pieces;
    for (size_t i = 0; i < kPieces; ++i) {
      pieces.push_back(pool.allocate(kCount * sizeof(float)).value());
      std::ranges::fill(floats(pieces.back()), i == kOne ? 1.f : 0.f);
    }
    // Both see the same bytes.
    const Side draft(swapped ? devices_.back() : devices_.front(), pool, pieces);
    const Side target(swapped ? devices_.front() : devices_.back(), pool, pieces);
    std::printf("draft on %s, target on %s\n", draft.device->name().c_str(),
                target.device->name().c_str());
    // By the parity of the step that they are for.
    const std::array<std::unique_ptr<ComputePass>, 2> verify = {
        target.add(kOtherState, kRise, kState), target.add(kState, kRise, kOtherState)};
    const std::array<std::unique_ptr<ComputePass>, 2> look_ahead = {
        draft.add(kOtherGuess, kOne, kGuess), draft.add(kGuess, kOne, kOtherGuess)};
    const std::array<std::unique_ptr<ComputePass>, 2> redo = {draft.add(kOtherState, kOne, kGuess),
                                                              draft.add(kState, kOne, kOtherGuess)};

    const auto drafted = VulkanTimeline::create(draft.device).value();
    const auto may_look = VulkanTimeline::create(draft.device).value();
    const auto looked = VulkanTimeline::create(draft.device).value();
    const auto may_verify = VulkanTimeline::create(target.device).value();
    const auto verified = VulkanTimeline::create(target.device).value();
    HostTimeline sampled;
    const StepGraph graph = StepGraph::create(*drafted, *verified, sampled, 2).value();
    std::atomic<bool> right{false};  // of the step that was sampled last
    std::atomic<int> wrong{0};
    int kept = 0;
    int discarded = 0;

    std::thread drafting([&] {
      const auto fail = [&] {
        ++wrong;
        graph.abandon();
        looked->abandon();
      };
      for (uint64_t step = 1; step <= kSteps; ++step) {
        if (graph.begin(Stage::kDraft, step, soon()) != Wait::kReached) return fail();
        if (!may_look->signal(step).ok()) return fail();
        if (step > 1) {
          if (!look_ahead[step % 2]->submit(*may_look, step, *looked, step).ok()) return fail();
          if (looked->wait(step, soon()) != Wait::kReached) return fail();
          // The only wait for the target: what it decided.
          if (sampled.wait(step - 1, soon()) != Wait::kReached) return fail();
          right ? ++kept : ++discarded;
        }
        if (right) {
          if (!graph.end(Stage::kDraft, step).ok()) return fail();
        } else {
          if (!redo[step % 2]->submit(*may_look, step, *drafted, step).ok()) return fail();
          // The pass may be submitted again only when it is done.
          if (drafted->wait(step, soon()) != Wait::kReached) return fail();
        }
      }
    });
    float state = 0;
    for (uint64_t step = 1; step <= kSteps; ++step) {
      // The target's device cannot wait for the draft's: the processor carries the value over.
      if (graph.begin(Stage::kTarget, step, soon()) != Wait::kReached) break;
      std::ranges::fill(floats(pieces[kRise]), rise(step));
      if (!verify[step % 2]->submit(*may_verify, step, *verified, step).ok()) break;
      if (step < kSteps && looked->wait(step + 1, soon()) != Wait::kReached) break;
      EXPECT_EQ(verified->value(), step - 1);
      EXPECT_EQ(sampled.value(), step - 1);
      if (!may_verify->signal(step).ok()) break;
      if (graph.begin(Stage::kSampler, step, soon()) != Wait::kReached) break;
      state += rise(step);
      const std::span<float> found = floats(pieces[step % 2 == 0 ? kState : kOtherState]);
      const std::span<float> guess = floats(pieces[step % 2 == 0 ? kGuess : kOtherGuess]);
      wrong += std::ranges::all_of(found, [&](float each) { return each == state; }) ? 0 : 1;
      right = std::ranges::equal(found, guess);
      if (right != (rise(step) == 1)) ++wrong;
      if (!graph.end(Stage::kSampler, step).ok()) break;
    }
    if (graph.steps_done() < kSteps) graph.abandon();
    drafting.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(graph.steps_done(), kSteps);
    EXPECT_EQ(discarded, static_cast<int>((kSteps - 1) / 3));
    EXPECT_EQ(kept, static_cast<int>(kSteps - 1) - discarded);
    std::printf("%d looks ahead kept, %d discarded\n", kept, discarded);
  }
}

}  // namespace
}  // namespace sapwood::vulkan
