// How K and V lie in memory, for one layer.
//
// float16: raw IEEE half bits. Keys are grouped in tiles of 16 slots with the slot innermost, so
// that one vector holds the same dimension of 16 slots and a score needs no horizontal sum:
//   keys   [kv_heads][slots / 16][head_dim][16]
//   values [kv_heads][slots][head_dim]
//
// int8: symmetric codes with float scales, in the order that instructions for dot products of four
// bytes want: four dimensions of a slot's key, four slots of one dimension of the values.
//   keys   [kv_heads] of  codes  [slots / 16][head_dim / 4][16][4], biased by 128 (u is u - 128)
//                         scales [slots / 16][groups][16], a group being 32 dimensions, or the last
//                                16 of a head that has an odd number of 16s
//   values [kv_heads] of  codes  [slots / 4][head_dim][4], signed
//                         scales [slots]
// The number of slots is a multiple of 16, head_dim too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sapwood {

inline constexpr int kKeyTile = 16;
inline constexpr int kKeyGroup = 32;  // dimensions of an int8 key that share a scale
inline constexpr int kValueQuad = 4;  // slots whose int8 values lie together

enum class KvFormat { kFloat16, kInt8 };

std::optional<KvFormat> parse_kv_format(std::string_view name);  // "float16", "int8"
std::string_view kv_format_name(KvFormat format);

struct KvLayout {
  int kv_heads = 0;
  int head_dim = 0;
  int slots = 0;  // a multiple of kKeyTile
  KvFormat format = KvFormat::kFloat16;

  size_t elements() const { return static_cast<size_t>(kv_heads) * slots * head_dim; }
  int key_groups() const { return (head_dim + kKeyGroup - 1) / kKeyGroup; }
  size_t key_bytes() const { return slot_key_bytes() * kv_heads * slots; }
  size_t value_bytes() const { return slot_value_bytes() * kv_heads * slots; }

  // float16, in halves.
  size_t key_offset(int head, int slot, int dim) const {
    const size_t tile = static_cast<size_t>(slot) / kKeyTile;
    return ((static_cast<size_t>(head) * (slots / kKeyTile) + tile) * head_dim + dim) * kKeyTile +
           slot % kKeyTile;
  }
  size_t value_offset(int head, int slot, int dim) const {
    return (static_cast<size_t>(head) * slots + slot) * head_dim + dim;
  }

  // int8: codes in bytes from the start of a head's keys or values, scales in floats.
  size_t key_code(int slot, int dim) const {
    const size_t quad = static_cast<size_t>(slot / kKeyTile) * (head_dim / 4) + dim / 4;
    return (quad * kKeyTile + slot % kKeyTile) * 4 + dim % 4;
  }
  size_t key_scale(int slot, int group) const {
    return (static_cast<size_t>(slot / kKeyTile) * key_groups() + group) * kKeyTile +
           slot % kKeyTile;
  }
  size_t value_code(int slot, int dim) const {
    return (static_cast<size_t>(slot / kValueQuad) * head_dim + dim) * kValueQuad +
           slot % kValueQuad;
  }

  // Bytes of one slot and kv head.
  size_t slot_key_bytes() const {
    return format == KvFormat::kInt8 ? head_dim + sizeof(float) * key_groups()
                                     : sizeof(uint16_t) * head_dim;
  }
  size_t slot_value_bytes() const {
    return format == KvFormat::kInt8 ? head_dim + sizeof(float) : sizeof(uint16_t) * head_dim;
  }
};

// One kv head of an int8 cache.
struct Int8Head {
  uint8_t* key_codes = nullptr;
  float* key_scales = nullptr;
  int8_t* value_codes = nullptr;
  float* value_scales = nullptr;
};

// One layer's cache, 64-byte aligned: halves or bytes, as the format says.
struct KvLayerView {
  KvLayout layout;
  uint16_t* keys = nullptr;  // float16
  uint16_t* values = nullptr;
  uint8_t* int8_keys = nullptr;  // int8
  uint8_t* int8_values = nullptr;

  Int8Head int8_head(int head) const {
    const size_t codes = static_cast<size_t>(layout.slots) * layout.head_dim;
    uint8_t* keys_of = int8_keys + layout.slot_key_bytes() * layout.slots * head;
    uint8_t* values_of = int8_values + layout.slot_value_bytes() * layout.slots * head;
    return {keys_of, reinterpret_cast<float*>(keys_of + codes),
            reinterpret_cast<int8_t*>(values_of), reinterpret_cast<float*>(values_of + codes)};
  }
};

}  // namespace sapwood
