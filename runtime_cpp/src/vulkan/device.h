// A Vulkan device for computing, as the runtime uses it: one queue, memory that comes from a pool.
//
// The Vulkan library is looked for at run time. Where there is none, or no device that has timeline
// semaphores and takes memory from outside, devices() is empty or create() says what is missing.
#pragma once

#include <volk.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace sapwood::vulkan {

// kUnsupported with `what` and the result's number; kExhausted where memory ran out.
Status error_of(const char* what, VkResult result);

// One of Vulkan's structures: zero, but for its type and what it is chained to.
template <typename Structure>
Structure structure(VkStructureType type, const void* next = nullptr) {
  Structure made = {};
  made.sType = type;
  made.pNext = const_cast<void*>(next);
  return made;
}

class Device {
 public:
  // Names of the devices of this machine, by index.
  static Result<std::vector<std::string>> names();
  static Result<std::shared_ptr<Device>> create(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  VkDevice handle() const { return device_; }
  const std::string& name() const { return name_; }
  const VkPhysicalDeviceLimits& limits() const { return limits_; }
  bool imports_dma_bufs() const { return imports_dma_bufs_; }
  bool imports_host_memory() const { return imports_host_memory_; }
  // What the address and the size of imported host memory are multiples of.
  VkDeviceSize host_memory_alignment() const { return host_memory_alignment_; }
  uint32_t queue_family() const { return queue_family_; }
  const VolkDeviceTable& functions() const { return functions_; }

  // The first type of `allowed_types` (a bit each) that has the properties; -1 if there is none.
  int memory_type(uint32_t allowed_types, VkMemoryPropertyFlags properties) const;

  // One caller at a time is let through.
  Status submit(const VkSubmitInfo& work);

 private:
  Device() = default;

  std::string name_;
  VkPhysicalDeviceLimits limits_ = {};
  VkPhysicalDeviceMemoryProperties memory_ = {};
  bool imports_dma_bufs_ = false;
  bool imports_host_memory_ = false;
  VkDeviceSize host_memory_alignment_ = 1;
  uint32_t queue_family_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VolkDeviceTable functions_ = {};
  std::mutex submitting_;
};

}  // namespace sapwood::vulkan
