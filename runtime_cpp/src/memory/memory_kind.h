// Where shared memory can come from.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"

namespace sapwood {

enum class MemoryKind {
  kDmaHeap,         // a dma-buf from /dev/dma_heap/system: every device that takes dma-bufs maps it
  kUdmabuf,         // a dma-buf made of a memfd's pages by /dev/udmabuf
  kHardwareBuffer,  // an AHardwareBuffer; Android only
  kMemfd,           // a sealed memfd: shared between processes, imported by no device
  kHost,            // anonymous memory of this process
  kDmaBuf,          // a dma-buf that somebody else made; only ever imported
};

// "dma_heap", "udmabuf", "hardware_buffer", "memfd", "host", "dma_buf".
const char* memory_kind_name(MemoryKind kind);
std::optional<MemoryKind> parse_memory_kind(std::string_view name);

// The kinds that can be made, best first: what more devices can use stands earlier.
std::span<const MemoryKind> creatable_memory_kinds();

// Makes a page of it and gives it back: okay, or why this machine has none.
Status try_memory_kind(MemoryKind kind);

// The first of creatable_memory_kinds() that this machine has. Tried once, then remembered.
MemoryKind best_memory_kind();

}  // namespace sapwood
