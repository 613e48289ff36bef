// A unified pool as a Vulkan device sees it: the same bytes, no copy.
//
//   Result<PoolMemory> memory = PoolMemory::import(device, pool);     // once
//   Result<Buffer> logits = memory->bind(handle);                     // a piece, at its offset
//
// A dma-buf is imported by descriptor where the driver takes one, everything else by address
// (VK_EXT_external_memory_host). The memory is coherent: what one side wrote before it signalled,
// the other side reads after it waited.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "memory/unified_pool.h"
#include "vulkan/device.h"

namespace sapwood::vulkan {

class PoolMemory;

// A piece of a pool as storage of a shader. Keeps the piece and its memory.
class Buffer {
 public:
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(piece_, other.piece_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Buffer();

  VkBuffer handle() const { return buffer_; }
  VkDeviceSize bytes() const { return piece_.bytes(); }

 private:
  friend class PoolMemory;
  struct Memory;
  Buffer() = default;

  std::shared_ptr<Memory> memory_;
  TensorHandle piece_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
};

class PoolMemory {
 public:
  // kUnsupported where the device takes neither the descriptor nor the address, or no memory that
  // both sides see alike. The memory itself lives as long as the pool, its pieces or their buffers.
  static Result<PoolMemory> import(std::shared_ptr<Device> device, const UnifiedPool& pool);

  // kUnsupported for more bytes than a shader can address here (maxStorageBufferRange),
  // kInvalidArgument for a piece of another pool.
  Result<Buffer> bind(TensorHandle piece) const;

  bool by_descriptor() const;

 private:
  explicit PoolMemory(std::shared_ptr<Buffer::Memory> memory) : memory_(std::move(memory)) {}

  std::shared_ptr<Buffer::Memory> memory_;
};

}  // namespace sapwood::vulkan
