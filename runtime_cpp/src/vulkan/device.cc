#include "vulkan/device.h"

#include <cstring>
#include <string_view>

namespace sapwood::vulkan {
namespace {

// One for the process: drivers are loaded once and stay.
Result<VkInstance> instance() {
  static const Result<VkInstance> made = []() -> Result<VkInstance> {
    if (volkInitialize() != VK_SUCCESS) {
      return Status(Code::kUnsupported, "no Vulkan library on this machine (libvulkan.so.1)");
    }
    auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
    application.pApplicationName = "sapwood";
    application.apiVersion = VK_API_VERSION_1_2;
    auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
    info.pApplicationInfo = &application;
    VkInstance created = VK_NULL_HANDLE;
    const VkResult result = vkCreateInstance(&info, nullptr, &created);
    if (result != VK_SUCCESS) return error_of("no Vulkan driver", result);
    volkLoadInstanceOnly(created);
    return created;
  }();
  return made;
}

Result<std::vector<VkPhysicalDevice>> physical_devices() {
  const Result<VkInstance> made = instance();
  if (!made.ok()) return made.status();
  uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(made.value(), &count, nullptr);
  std::vector<VkPhysicalDevice> devices(count);
  if (result == VK_SUCCESS) {
    result = vkEnumeratePhysicalDevices(made.value(), &count, devices.data());
  }
  if (result != VK_SUCCESS) return error_of("listing Vulkan devices", result);
  return devices;
}

bool has(const std::vector<VkExtensionProperties>& extensions, std::string_view name) {
  for (const VkExtensionProperties& extension : extensions) {
    if (name == extension.extensionName) return true;
  }
  return false;
}

std::vector<VkExtensionProperties> extensions_of(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  return extensions;
}

// -1: it computes nothing.
int compute_family(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Status error_of(const char* what, VkResult result) {
  const bool exhausted =
      result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return Status(exhausted ? Code::kExhausted : Code::kUnsupported,
                std::string(what) + ": Vulkan error " + std::to_string(result));
}

Result<std::vector<std::string>> Device::names() {
  const Result<std::vector<VkPhysicalDevice>> devices = physical_devices();
  if (!devices.ok()) return devices.status();
  std::vector<std::string> names;
  for (VkPhysicalDevice device : devices.value()) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(device, &properties);
    names.emplace_back(properties.deviceName);
  }
  return names;
}

Result<std::shared_ptr<Device>> Device::create(int index) {
  const Result<std::vector<VkPhysicalDevice>> devices = physical_devices();
  if (!devices.ok()) return devices.status();
  if (index < 0 || static_cast<size_t>(index) >= devices.value().size()) {
    return Status(Code::kNotFound, "there is no Vulkan device " + std::to_string(index) + "; " +
                                       std::to_string(devices.value().size()) + " are here");
  }
  VkPhysicalDevice physical = devices.value()[static_cast<size_t>(index)];
  std::shared_ptr<Device> device(new Device());

  auto host_memory = structure<VkPhysicalDeviceExternalMemoryHostPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT);
  auto properties = structure<VkPhysicalDeviceProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host_memory);
  vkGetPhysicalDeviceProperties(physical, &properties.properties);
  device->name_ = properties.properties.deviceName;
  device->limits_ = properties.properties.limits;
  vkGetPhysicalDeviceMemoryProperties(physical, &device->memory_);
  if (properties.properties.apiVersion < VK_API_VERSION_1_2) {
    return Status(Code::kUnsupported, device->name_ + ": Vulkan 1.2 is needed");
  }
  auto features12 = structure<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  auto features = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                                       &features12);
  vkGetPhysicalDeviceFeatures2(physical, &features);
  const int family = compute_family(physical);
  if (features12.timelineSemaphore == VK_FALSE || family < 0) {
    return Status(Code::kUnsupported,
                  device->name_ + ": it has no timeline semaphores, or does not compute");
  }
  device->queue_family_ = static_cast<uint32_t>(family);

  const std::vector<VkExtensionProperties> available = extensions_of(physical);
  std::vector<const char*> wanted;
  if (has(available, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
    wanted.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    device->imports_host_memory_ = true;
    vkGetPhysicalDeviceProperties2(physical, &properties);
    device->host_memory_alignment_ = host_memory.minImportedHostPointerAlignment;
  }
  if (has(available, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) &&
      has(available, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME)) {
    wanted.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    wanted.push_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    device->imports_dma_bufs_ = true;
  }

  auto enabled = structure<VkPhysicalDeviceVulkan12Features>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  enabled.timelineSemaphore = VK_TRUE;
  const float priority = 1;
  auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = device->queue_family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &enabled);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(wanted.size());
  info.ppEnabledExtensionNames = wanted.data();
  const VkResult result = vkCreateDevice(physical, &info, nullptr, &device->device_);
  if (result != VK_SUCCESS) return error_of(device->name_.c_str(), result);
  volkLoadDeviceTable(&device->functions_, device->device_);
  device->functions_.vkGetDeviceQueue(device->device_, device->queue_family_, 0, &device->queue_);
  return device;
}

Device::~Device() {
  if (device_ == VK_NULL_HANDLE) return;
  functions_.vkDeviceWaitIdle(device_);
  functions_.vkDestroyDevice(device_, nullptr);
}

int Device::memory_type(uint32_t allowed_types, VkMemoryPropertyFlags properties) const {
  for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i) {
    if ((allowed_types >> i & 1) != 0 &&
        (memory_.memoryTypes[i].propertyFlags & properties) == properties) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

Status Device::submit(const VkSubmitInfo& work) {
  const std::lock_guard lock(submitting_);
  const VkResult result = functions_.vkQueueSubmit(queue_, 1, &work, VK_NULL_HANDLE);
  return result == VK_SUCCESS ? Status::okay() : error_of("submitting to a device", result);
}

}  // namespace sapwood::vulkan
