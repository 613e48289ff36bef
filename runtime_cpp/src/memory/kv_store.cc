#include "memory/kv_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <string>

namespace sapwood {
namespace {

// A page in front of the cache holds the size of the mapping, for unmapping. Anonymous mappings are
// zero and cost nothing until they are touched, so a long context is free until it is used.
size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

void KvStore::Free::operator()(uint16_t* memory) const {
  if (memory == nullptr) return;
  std::byte* mapping = reinterpret_cast<std::byte*>(memory) - page_size();
  size_t bytes = 0;
  std::memcpy(&bytes, mapping, sizeof(bytes));
  munmap(mapping, bytes);
}

Result<std::unique_ptr<KvStore>> KvStore::create(int layers, int kv_heads, int head_dim,
                                                 int slots) {
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
  store->layout_ = {kv_heads, head_dim, (slots + kKeyTile - 1) / kKeyTile * kKeyTile};

  size_t bytes = sizeof(uint16_t) * 2;  // keys and values
  for (const int factor : {layers, kv_heads, head_dim, store->layout_.slots}) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(factor), &bytes)) {
      return Status(Code::kInvalidArgument, "the KV cache would not fit into any memory");
    }
  }
  if (__builtin_add_overflow(bytes, page_size(), &bytes)) {
    return Status(Code::kInvalidArgument, "the KV cache would not fit into any memory");
  }
  void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return Status(Code::kExhausted, "no memory for a KV cache of " + std::to_string(bytes >> 20) +
                                        " MiB; use a shorter context");
  }
  std::memcpy(mapping, &bytes, sizeof(bytes));
  store->memory_.reset(reinterpret_cast<uint16_t*>(static_cast<std::byte*>(mapping) + page_size()));
  return store;
}

KvLayerView KvStore::layer(int layer) const {
  uint16_t* keys = memory_.get() + layout_.elements() * 2 * layer;
  return {layout_, keys, keys + layout_.elements()};
}

void KvStore::copy_slot(int from, int to) {
  if (from == to) return;
  for (int l = 0; l < layers_; ++l) {
    const KvLayerView view = layer(l);
    for (int head = 0; head < layout_.kv_heads; ++head) {
      const uint16_t* key_from = view.keys + layout_.key_offset(head, from, 0);
      uint16_t* key_to = view.keys + layout_.key_offset(head, to, 0);
      for (int d = 0; d < layout_.head_dim; ++d) key_to[d * kKeyTile] = key_from[d * kKeyTile];
      std::memcpy(view.values + layout_.value_offset(head, to, 0),
                  view.values + layout_.value_offset(head, from, 0),
                  sizeof(uint16_t) * layout_.head_dim);
    }
  }
}

}  // namespace sapwood
