#include "vulkan/pool_memory.h"

#include <unistd.h>

#include <string>

namespace sapwood::vulkan {

struct Buffer::Memory {
  std::shared_ptr<Device> device;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkExternalMemoryHandleTypeFlagBits type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const std::byte* data = nullptr;  // where the pool's memory lies here
  size_t bytes = 0;

  ~Memory() {
    if (memory != VK_NULL_HANDLE) {
      device->functions().vkFreeMemory(device->handle(), memory, nullptr);
    }
  }
};

namespace {

constexpr VkMemoryPropertyFlags kCoherent =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

VkResult make_buffer(const Device& device, VkExternalMemoryHandleTypeFlagBits type,
                     VkDeviceSize bytes, VkBuffer* buffer) {
  auto external = structure<VkExternalMemoryBufferCreateInfo>(
      VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
  external.handleTypes = static_cast<VkExternalMemoryHandleTypeFlags>(type);
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, &external);
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  return device.functions().vkCreateBuffer(device.handle(), &info, nullptr, buffer);
}

// Allocates device memory over what `import` names, of a type among `types`.
Result<VkDeviceMemory> allocate(const Device& device, uint32_t types, VkDeviceSize bytes,
                                const void* import) {
  const int type = device.memory_type(types, kCoherent);
  if (type < 0) {
    return Status(Code::kUnsupported, device.name() +
                                          ": it sees the pool's memory otherwise than "
                                          "the processor (not coherent)");
  }
  auto info = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, import);
  info.allocationSize = bytes;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  const VkResult result =
      device.functions().vkAllocateMemory(device.handle(), &info, nullptr, &memory);
  if (result != VK_SUCCESS) return error_of("importing a pool", result);
  return memory;
}

Result<VkDeviceMemory> import_descriptor(const Device& device, const UnifiedPool& pool) {
  const Result<int> fd = pool.export_fd();
  if (!fd.ok()) return fd.status();
  auto properties = structure<VkMemoryFdPropertiesKHR>(VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR);
  const VkResult result = device.functions().vkGetMemoryFdPropertiesKHR(
      device.handle(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, fd.value(), &properties);
  auto import = structure<VkImportMemoryFdInfoKHR>(VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  import.fd = fd.value();
  Result<VkDeviceMemory> memory =
      result == VK_SUCCESS ? allocate(device, properties.memoryTypeBits, pool.bytes(), &import)
                           : error_of("a dma-buf", result);
  if (!memory.ok()) ::close(fd.value());  // else it is the driver's
  return memory;
}

Result<VkDeviceMemory> import_address(const Device& device, const UnifiedPool& pool) {
  std::byte* data = pool.block().data();
  if (reinterpret_cast<uintptr_t>(data) % device.host_memory_alignment() != 0 ||
      pool.bytes() % device.host_memory_alignment() != 0) {
    return Status(Code::kUnsupported, device.name() + ": it imports host memory in multiples of " +
                                          std::to_string(device.host_memory_alignment()) +
                                          " bytes only");
  }
  auto properties = structure<VkMemoryHostPointerPropertiesEXT>(
      VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT);
  const VkResult result = device.functions().vkGetMemoryHostPointerPropertiesEXT(
      device.handle(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, data, &properties);
  if (result != VK_SUCCESS) return error_of("host memory", result);
  auto import = structure<VkImportMemoryHostPointerInfoEXT>(
      VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  import.pHostPointer = data;
  return allocate(device, properties.memoryTypeBits, pool.bytes(), &import);
}

}  // namespace

Result<PoolMemory> PoolMemory::import(std::shared_ptr<Device> device, const UnifiedPool& pool) {
  auto memory = std::make_shared<Buffer::Memory>();
  memory->device = device;
  memory->data = pool.block().data();
  memory->bytes = pool.bytes();
  Status why(Code::kUnsupported, device->name() + ": it imports neither dma-bufs nor host memory");
  if (pool.block().is_dma_buf() && device->imports_dma_bufs()) {
    const Result<VkDeviceMemory> imported = import_descriptor(*device, pool);
    if (imported.ok()) {
      memory->memory = imported.value();
      memory->type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
      return PoolMemory(std::move(memory));
    }
    why = imported.status();
  }
  if (device->imports_host_memory()) {
    const Result<VkDeviceMemory> imported = import_address(*device, pool);
    if (!imported.ok()) return imported.status();
    memory->memory = imported.value();
    return PoolMemory(std::move(memory));
  }
  return why;
}

bool PoolMemory::by_descriptor() const {
  return memory_->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
}

Result<Buffer> PoolMemory::bind(TensorHandle piece) const {
  const Device& device = *memory_->device;
  if (!piece || piece.data() - piece.offset() != memory_->data) {
    return Status(Code::kInvalidArgument, "the tensor is no piece of the imported pool");
  }
  if (piece.bytes() > device.limits().maxStorageBufferRange) {
    return Status(Code::kUnsupported, device.name() + ": a shader addresses " +
                                          std::to_string(device.limits().maxStorageBufferRange) +
                                          " bytes at most, not " + std::to_string(piece.bytes()));
  }
  Buffer buffer;
  buffer.memory_ = memory_;
  VkResult result = make_buffer(device, memory_->type, piece.bytes(), &buffer.buffer_);
  if (result != VK_SUCCESS) return error_of("a buffer over a pool", result);
  VkMemoryRequirements needs;
  device.functions().vkGetBufferMemoryRequirements(device.handle(), buffer.buffer_, &needs);
  if (piece.offset() % needs.alignment != 0 || piece.offset() + needs.size > memory_->bytes) {
    return Status(Code::kUnsupported, device.name() + ": it wants buffers aligned to " +
                                          std::to_string(needs.alignment) + " bytes");
  }
  result = device.functions().vkBindBufferMemory(device.handle(), buffer.buffer_, memory_->memory,
                                                 piece.offset());
  if (result != VK_SUCCESS) return error_of("binding a buffer to a pool", result);
  buffer.piece_ = std::move(piece);
  return buffer;
}

Buffer::~Buffer() {
  if (buffer_ == VK_NULL_HANDLE) return;
  memory_->device->functions().vkDestroyBuffer(memory_->device->handle(), buffer_, nullptr);
}

}  // namespace sapwood::vulkan
