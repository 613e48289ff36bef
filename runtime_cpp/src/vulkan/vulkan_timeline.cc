#include "vulkan/vulkan_timeline.h"

#include <algorithm>
#include <string>

namespace sapwood::vulkan {
namespace {

// How long a wait sleeps before it looks whether it was abandoned.
constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds(5);

}  // namespace

Result<std::unique_ptr<VulkanTimeline>> VulkanTimeline::create(std::shared_ptr<Device> device,
                                                               uint64_t value) {
  auto type = structure<VkSemaphoreTypeCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  type.initialValue = value;
  const auto info =
      structure<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type);
  VkSemaphore semaphore = VK_NULL_HANDLE;
  const VkResult result =
      device->functions().vkCreateSemaphore(device->handle(), &info, nullptr, &semaphore);
  if (result != VK_SUCCESS) return error_of("a timeline semaphore", result);
  return std::unique_ptr<VulkanTimeline>(new VulkanTimeline(std::move(device), semaphore));
}

VulkanTimeline::~VulkanTimeline() {
  device_->functions().vkDestroySemaphore(device_->handle(), semaphore_, nullptr);
}

uint64_t VulkanTimeline::value() const {
  uint64_t value = 0;
  device_->functions().vkGetSemaphoreCounterValue(device_->handle(), semaphore_, &value);
  return value;
}

Wait VulkanTimeline::wait(uint64_t value, Deadline deadline) {
  auto info = structure<VkSemaphoreWaitInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds left =
        deadline <= now ? std::chrono::nanoseconds(0)
                        : std::min<std::chrono::nanoseconds>(kSlice, deadline - now);
    const VkResult result = device_->functions().vkWaitSemaphores(
        device_->handle(), &info, static_cast<uint64_t>(left.count()));
    if (result == VK_SUCCESS) return Wait::kReached;
    if (result != VK_TIMEOUT) abandon();  // the device is lost, or there is no memory to wait with
    if (abandoned_.load(std::memory_order_acquire)) {
      return this->value() >= value ? Wait::kReached : Wait::kAbandoned;
    }
    if (deadline <= now) return Wait::kMissed;
  }
}

Status VulkanTimeline::signal(uint64_t value) {
  if (abandoned_.load(std::memory_order_acquire)) {
    return Status(Code::kCancelled, "the timeline was abandoned");
  }
  // What Vulkan leaves undefined.
  const uint64_t present = this->value();
  if (value <= present) return refused_signal(present, value);
  auto info = structure<VkSemaphoreSignalInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO);
  info.semaphore = semaphore_;
  info.value = value;
  const VkResult result = device_->functions().vkSignalSemaphore(device_->handle(), &info);
  return result == VK_SUCCESS ? Status::okay() : error_of("signalling a timeline", result);
}

}  // namespace sapwood::vulkan
