// Memory and time shared with every Vulkan device that this machine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memory_kinds.h"
#include "sync/step_graph.h"
#include "vulkan_devices.h"

namespace sapwood::vulkan {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The processor writes, the device adds, the processor reads, each in the pool's own bytes, in
// turns that two timelines keep.
TEST_F(VulkanDevices, AddWhatTheProcessorWroteWithoutACopy) {
  constexpr uint32_t kCount = 10000;
  constexpr uint64_t kSteps = 20;
  for (const std::shared_ptr<Device>& device : devices_) {
    for (const MemoryKind kind : creatable_memory_kinds()) {
      if (!try_memory_kind(kind).ok()) continue;
      SCOPED_TRACE(device->name() + ", " + memory_kind_name(kind));
      UnifiedPool pool = UnifiedPool::create(kind, 1 << 20, {.guard_pages = false}).value();
      const Result<PoolMemory> memory = PoolMemory::import(device, pool);
      ASSERT_TRUE(memory.ok()) << memory.status().message();
      EXPECT_TRUE(pool.block().is_dma_buf() || !memory.value().by_descriptor());
      std::printf("%s, %s: imported by %s\n", device->name().c_str(), memory_kind_name(kind),
                  memory.value().by_descriptor() ? "descriptor" : "address");
      std::array<TensorHandle, 3> pieces;
      std::vector<Buffer> buffers;
      for (TensorHandle& piece : pieces) {
        piece = pool.allocate(kCount * sizeof(float)).value();
        Result<Buffer> buffer = memory.value().bind(piece);
        ASSERT_TRUE(buffer.ok()) << buffer.status().message();
        buffers.push_back(std::move(buffer).value());
        EXPECT_EQ(piece.references(), 2);
      }
      const std::array<const Buffer*, 3> bound = {&buffers[0], &buffers[1], &buffers[2]};
      const auto pass = ComputePass::record(
          device, add_shader(), bound, std::as_bytes(std::span(&kCount, 1)), (kCount + 255) / 256);
      ASSERT_TRUE(pass.ok()) << pass.status().message();
      const auto written = VulkanTimeline::create(device).value();
      const auto added = VulkanTimeline::create(device).value();
      for (uint64_t step = 1; step <= kSteps; ++step) {
        // Submitted before there is anything to add: the device waits for the processor.
        ASSERT_TRUE(pass.value()->submit(*written, step, *added, step).ok());
        for (uint32_t i = 0; i < kCount; ++i) {
          floats(pieces[0])[i] = static_cast<float>(i);
          floats(pieces[1])[i] = static_cast<float>(step * 7);
        }
        EXPECT_EQ(added->value(), step - 1);
        ASSERT_TRUE(written->signal(step).ok());
        ASSERT_EQ(added->wait(step, soon()), Wait::kReached);
        for (uint32_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(floats(pieces[2])[i], static_cast<float>(i + step * 7)) << i;
        }
      }
      buffers.clear();
      EXPECT_EQ(pieces[0].references(), 1);
    }
  }
}

TEST_F(VulkanDevices, RefuseWhatTheyCannotDoWithALine) {
  for (const std::shared_ptr<Device>& device : devices_) {
    SCOPED_TRACE(device->name());
    UnifiedPool pool = UnifiedPool::create(MemoryKind::kHost, 1 << 16).value();
    UnifiedPool other = UnifiedPool::create(MemoryKind::kHost, 1 << 16).value();
    const PoolMemory memory = PoolMemory::import(device, pool).value();
    EXPECT_EQ(memory.bind(other.allocate(64).value()).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(memory.bind(TensorHandle()).status().code(), Code::kInvalidArgument);
    const Status many = ComputePass::record(device, add_shader(), {}, {}, ~uint32_t{0}).status();
    EXPECT_EQ(many.code(), Code::kUnsupported);
    EXPECT_NE(many.message().find("more than it takes"), std::string::npos) << many.message();
    EXPECT_EQ(Device::create(-1).status().code(), Code::kNotFound);
    EXPECT_EQ(Device::create(1000).status().code(), Code::kNotFound);
    const size_t limit = device->limits().maxStorageBufferRange;
    if (limit < size_t{1} << 31) {
      UnifiedPool large =
          UnifiedPool::create(MemoryKind::kHost, limit + 4096, {.guard_pages = false}).value();
      const Result<PoolMemory> imported = PoolMemory::import(device, large);
      if (!imported.ok()) {
        // Some allocate less at once than a shader may address.
        std::printf("%s: %s\n", device->name().c_str(), imported.status().message().c_str());
        EXPECT_EQ(imported.status().code(), Code::kExhausted);
        continue;
      }
      EXPECT_EQ(imported.value().bind(large.allocate(limit + 1).value()).status().code(),
                Code::kUnsupported);
    }
  }
}

// The contract of Timeline, as tests/cpp/timeline_test.cc has it for the host's.
TEST_F(VulkanDevices, TimelinesKeepTheContract) {
  for (const std::shared_ptr<Device>& device : devices_) {
    const std::unique_ptr<VulkanTimeline> made = VulkanTimeline::create(device, 5).value();
    Timeline& timeline = *made;
    EXPECT_EQ(timeline.value(), 5u);
    EXPECT_EQ(timeline.wait(5, Deadline::min()), Wait::kReached);
    EXPECT_EQ(timeline.wait(6, Deadline::min()), Wait::kMissed);
    const Deadline deadline = steady_clock::now() + milliseconds(12);
    EXPECT_EQ(timeline.wait(6, deadline), Wait::kMissed);
    EXPECT_GE(steady_clock::now(), deadline);
    EXPECT_EQ(timeline.signal(5).code(), Code::kInvalidArgument);
    ASSERT_TRUE(timeline.signal(8).ok());
    EXPECT_EQ(timeline.wait(7, kNoDeadline), Wait::kReached);
    std::thread waiter([&] { EXPECT_EQ(timeline.wait(9, kNoDeadline), Wait::kAbandoned); });
    timeline.abandon();
    waiter.join();
    EXPECT_EQ(timeline.wait(8, kNoDeadline), Wait::kReached);
    EXPECT_EQ(timeline.signal(9).code(), Code::kCancelled);
  }
}

// A target on a device between a draft and a sampler on the processor, over the same graph that
// they use among themselves. Submits are made when the device need not wait.
TEST_F(VulkanDevices, TakeTheTargetsPlaceInTheGraphOfAStep) {
  constexpr uint32_t kCount = 512;
  constexpr uint64_t kSteps = 50;
  for (const std::shared_ptr<Device>& device : devices_) {
    UnifiedPool pool =
        UnifiedPool::create(MemoryKind::kHost, 1 << 16, {.guard_pages = false}).value();
    const PoolMemory memory = PoolMemory::import(device, pool).value();
    std::vector<TensorHandle> pieces;
    std::vector<Buffer> buffers;
    for (int i = 0; i < 3; ++i) {
      pieces.push_back(pool.allocate(kCount * sizeof(float)).value());
      buffers.push_back(memory.bind(pieces.back()).value());
    }
    std::ranges::fill(floats(pieces[1]), 1.0f);
    const std::array<const Buffer*, 3> bound = {&buffers[0], &buffers[1], &buffers[2]};
    const auto pass = ComputePass::record(device, add_shader(), bound,
                                          std::as_bytes(std::span(&kCount, 1)), kCount / 256);
    ASSERT_TRUE(pass.ok()) << pass.status().message();
    HostTimeline sampled;
    const auto drafted = VulkanTimeline::create(device).value();
    const auto verified = VulkanTimeline::create(device).value();
    const StepGraph graph = StepGraph::create(*drafted, *verified, sampled, 1).value();
    std::atomic<int> wrong{0};
    std::thread draft([&] {
      for (uint64_t step = 1; step <= kSteps; ++step) {
        if (graph.begin(Stage::kDraft, step, soon()) != Wait::kReached) return graph.abandon();
        std::ranges::fill(floats(pieces[0]), static_cast<float>(step));
        if (!graph.end(Stage::kDraft, step).ok()) ++wrong;
      }
    });
    std::thread target([&] {
      for (uint64_t step = 1; step <= kSteps; ++step) {
        if (graph.begin(Stage::kTarget, step, soon()) != Wait::kReached) return graph.abandon();
        if (!pass.value()->submit(*drafted, step, *verified, step).ok()) ++wrong;
        // The pass may be submitted again only when it is done.
        if (verified->wait(step, soon()) != Wait::kReached) return graph.abandon();
      }
    });
    for (uint64_t step = 1; step <= kSteps; ++step) {
      if (graph.begin(Stage::kSampler, step, soon()) != Wait::kReached) {
        ++wrong;
        graph.abandon();
        break;
      }
      for (const float sum : floats(pieces[2]))
        wrong += sum == static_cast<float>(step + 1) ? 0 : 1;
      if (!graph.end(Stage::kSampler, step).ok()) ++wrong;
    }
    draft.join();
    target.join();
    EXPECT_EQ(wrong.load(), 0) << device->name();
    EXPECT_EQ(graph.steps_done(), kSteps);
  }
}

}  // namespace
}  // namespace sapwood::vulkan
