#include "memory/kv_store.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace sapwood {
namespace {

// In huge pages all of a cache is there from the first tokens on, which only a small one may cost.
// In small pages it costs nothing until it is touched: a long context is free until it is used.
constexpr size_t kMostInHugePages = size_t{64} << 20;

void copy_float16(const KvLayerView& view, int head, int from, int to) {
  const KvLayout& layout = view.layout;
  const uint16_t* key_from = view.keys + layout.key_offset(head, from, 0);
  uint16_t* key_to = view.keys + layout.key_offset(head, to, 0);
  for (int d = 0; d < layout.head_dim; ++d) key_to[d * kKeyTile] = key_from[d * kKeyTile];
  std::memcpy(view.values + layout.value_offset(head, to, 0),
              view.values + layout.value_offset(head, from, 0), sizeof(uint16_t) * layout.head_dim);
}

void copy_int8(const KvLayerView& view, int head_index, int from, int to) {
  const KvLayout& layout = view.layout;
  const Int8Head head = view.int8_head(head_index);
  for (int quad = 0; quad < layout.head_dim; quad += 4) {
    std::memcpy(head.key_codes + layout.key_code(to, quad),
                head.key_codes + layout.key_code(from, quad), 4);
  }
  for (int group = 0; group < layout.key_groups(); ++group) {
    head.key_scales[layout.key_scale(to, group)] = head.key_scales[layout.key_scale(from, group)];
  }
  for (int dim = 0; dim < layout.head_dim; ++dim) {
    head.value_codes[layout.value_code(to, dim)] = head.value_codes[layout.value_code(from, dim)];
  }
  head.value_scales[to] = head.value_scales[from];
}

}  // namespace

Result<std::unique_ptr<KvStore>> KvStore::create(int layers, int kv_heads, int head_dim, int slots,
                                                 KvFormat format, MemoryKind kind) {
  if (layers < 1 || kv_heads < 1 || head_dim < 1 || slots < 1) {
    return Status(Code::kInvalidArgument,
                  "a KV cache needs at least one layer, head, dimension and slot; got " +
                      std::to_string(layers) + " layers, " + std::to_string(kv_heads) + " heads, " +
                      std::to_string(head_dim) + " dimensions, " + std::to_string(slots) +
                      " slots");
  }
  if (head_dim % kKeyTile != 0) {
    return Status(Code::kUnsupported, "head_dim " + std::to_string(head_dim) +
                                          " is not a multiple of " + std::to_string(kKeyTile));
  }
  if (slots > std::numeric_limits<int>::max() - kKeyTile) {
    return Status(Code::kInvalidArgument, std::to_string(slots) + " KV slots are too many");
  }
  std::unique_ptr<KvStore> store(new KvStore());
  store->layers_ = layers;
  store->layout_ = {kv_heads, head_dim, (slots + kKeyTile - 1) / kKeyTile * kKeyTile, format};

  size_t bytes = store->layout_.slot_key_bytes() + store->layout_.slot_value_bytes();
  for (const int factor : {layers, kv_heads, store->layout_.slots}) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(factor), &bytes)) {
      return Status(Code::kInvalidArgument, "the KV cache would not fit into any memory");
    }
  }
  // Attention walks all of a layer's cache; with small pages a third of its time went into finding
  // them. The pool is one piece, between the guard pages of its block.
  Result<UnifiedPool> pool = UnifiedPool::create(
      kind, bytes, {.guard_pages = false, .huge_pages = bytes <= kMostInHugePages});
  Result<TensorHandle> memory = pool.ok() ? pool->allocate(bytes) : pool.status();
  if (!memory.ok()) {
    return Status(memory.status().code(),
                  "no memory for a KV cache of " + std::to_string(bytes >> 20) + " MiB (" +
                      memory.status().message() + "); use a shorter context");
  }
  store->memory_ = std::move(memory).value();
  return store;
}

KvLayerView KvStore::layer(int layer) const {
  uint8_t* keys = reinterpret_cast<uint8_t*>(memory_.data()) +
                  (layout_.key_bytes() + layout_.value_bytes()) * layer;
  uint8_t* values = keys + layout_.key_bytes();
  if (format() == KvFormat::kInt8) {
    return {.layout = layout_, .int8_keys = keys, .int8_values = values};
  }
  return {.layout = layout_,
          .keys = reinterpret_cast<uint16_t*>(keys),
          .values = reinterpret_cast<uint16_t*>(values)};
}

void KvStore::copy_slot(int from, int to) {
  if (from == to) return;
  const auto copy = format() == KvFormat::kInt8 ? copy_int8 : copy_float16;
  for (int l = 0; l < layers_; ++l) {
    for (int head = 0; head < layout_.kv_heads; ++head) copy(layer(l), head, from, to);
  }
}

}  // namespace sapwood
