#include "memory/memory_kind.h"

#include <array>

#include "memory/memory_block.h"

namespace sapwood {
namespace {

struct Name {
  MemoryKind kind;
  const char* text;
};
constexpr std::array<Name, 6> kNames = {{
    {MemoryKind::kDmaHeap, "dma_heap"},
    {MemoryKind::kUdmabuf, "udmabuf"},
    {MemoryKind::kHardwareBuffer, "hardware_buffer"},
    {MemoryKind::kMemfd, "memfd"},
    {MemoryKind::kHost, "host"},
    {MemoryKind::kDmaBuf, "dma_buf"},
}};

constexpr std::array<MemoryKind, 5> kCreatable = {MemoryKind::kDmaHeap, MemoryKind::kUdmabuf,
                                                  MemoryKind::kHardwareBuffer, MemoryKind::kMemfd,
                                                  MemoryKind::kHost};

}  // namespace

const char* memory_kind_name(MemoryKind kind) {
  for (const Name& name : kNames) {
    if (name.kind == kind) return name.text;
  }
  return "unknown";
}

std::optional<MemoryKind> parse_memory_kind(std::string_view text) {
  for (const Name& name : kNames) {
    if (name.text == text) return name.kind;
  }
  return std::nullopt;
}

std::span<const MemoryKind> creatable_memory_kinds() { return kCreatable; }

Status try_memory_kind(MemoryKind kind) { return MemoryBlock::create(kind, 1).status(); }

MemoryKind best_memory_kind() {
  static const MemoryKind best = [] {
    for (const MemoryKind kind : kCreatable) {
      if (try_memory_kind(kind).ok()) return kind;
    }
    return MemoryKind::kHost;
  }();
  return best;
}

}  // namespace sapwood
