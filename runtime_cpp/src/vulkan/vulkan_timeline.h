// A timeline that a device signals and waits for, too: a Vulkan timeline semaphore.
#pragma once

#include <atomic>
#include <memory>

#include "sync/timeline.h"
#include "vulkan/device.h"

namespace sapwood::vulkan {

class VulkanTimeline final : public Timeline {
 public:
  static Result<std::unique_ptr<VulkanTimeline>> create(std::shared_ptr<Device> device,
                                                        uint64_t value = 0);
  ~VulkanTimeline() override;

  // For a submission that waits for or signals a value. What a device will signal must not be
  // signalled past from here (the driver may never run what waits below): submit only what need not
  // wait, that is, wait on the processor first.
  VkSemaphore semaphore() const { return semaphore_; }

  uint64_t value() const override;
  Wait wait(uint64_t value, Deadline deadline) override;
  Status signal(uint64_t value) override;
  // Seen by waits within a few milliseconds: a semaphore cannot be woken without raising it.
  void abandon() override { abandoned_.store(true, std::memory_order_release); }

 private:
  VulkanTimeline(std::shared_ptr<Device> device, VkSemaphore semaphore)
      : device_(std::move(device)), semaphore_(semaphore) {}

  std::shared_ptr<Device> device_;
  VkSemaphore semaphore_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace sapwood::vulkan
