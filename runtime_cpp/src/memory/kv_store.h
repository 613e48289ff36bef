// The KV cache of one session: the memory of all layers, and which slots are taken.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "kernels/kv_layout.h"
#include "memory/memory_kind.h"
#include "memory/unified_pool.h"

namespace sapwood {

class KvStore {
 public:
  // slots is rounded up to a multiple of kKeyTile. Memory is page-aligned and zeroed. Host memory
  // unless a device is to see it: the only kind that lies in huge pages and is there when touched.
  static Result<std::unique_ptr<KvStore>> create(int layers, int kv_heads, int head_dim, int slots,
                                                 KvFormat format = KvFormat::kFloat16,
                                                 MemoryKind kind = MemoryKind::kHost);

  int layers() const { return layers_; }
  int slots() const { return layout_.slots; }
  KvFormat format() const { return layout_.format; }
  const KvLayout& layout() const { return layout_; }
  // What one token takes, of all layers.
  size_t bytes_per_slot() const {
    return (layout_.slot_key_bytes() + layout_.slot_value_bytes()) * layout_.kv_heads * layers_;
  }
  KvLayerView layer(int layer) const;
  // All of it: [layers] of keys, then values.
  const TensorHandle& memory() const { return memory_; }

  // Copies one slot's K and V of all layers: how a commit moves accepted nodes together.
  void copy_slot(int from, int to);

 private:
  KvStore() = default;

  int layers_ = 0;
  KvLayout layout_;
  TensorHandle memory_;
};

}  // namespace sapwood
