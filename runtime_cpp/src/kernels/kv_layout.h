// How K and V lie in memory, for one layer.
//
// Keys are grouped in tiles of 16 slots with the slot innermost, so that one vector holds the same
// dimension of 16 slots and a score needs no horizontal sum:
//   keys   [kv_heads][slots / 16][head_dim][16]   fp16
//   values [kv_heads][slots][head_dim]            fp16
// The number of slots is a multiple of 16. Both are stored as raw IEEE half bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sapwood {

inline constexpr int kKeyTile = 16;

struct KvLayout {
  int kv_heads = 0;
  int head_dim = 0;
  int slots = 0;  // a multiple of kKeyTile

  size_t elements() const { return static_cast<size_t>(kv_heads) * slots * head_dim; }
  size_t key_offset(int head, int slot, int dim) const {
    const size_t tile = static_cast<size_t>(slot) / kKeyTile;
    return ((static_cast<size_t>(head) * (slots / kKeyTile) + tile) * head_dim + dim) * kKeyTile +
           slot % kKeyTile;
  }
  size_t value_offset(int head, int slot, int dim) const {
    return (static_cast<size_t>(head) * slots + slot) * head_dim + dim;
  }
};

// One layer's cache. Both arrays have layout.elements() halves and are 64-byte aligned.
struct KvLayerView {
  KvLayout layout;
  uint16_t* keys = nullptr;
  uint16_t* values = nullptr;
};

}  // namespace sapwood
