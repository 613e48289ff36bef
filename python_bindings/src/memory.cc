// KvSlotBitmap, PrefixTrie and KvStore.

#include "bindings.h"
#include "memory/kv_slot_bitmap.h"
#include "memory/kv_store.h"
#include "memory/prefix_trie.h"

namespace sapwood::python {
namespace {

using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::c_contig>;

// The memory of one layer's K or V as a flat array that lives as long as `owner`.
Bytes bytes(uint16_t* halves, uint8_t* int8, size_t count, nb::handle owner) {
  uint8_t* data = halves != nullptr ? reinterpret_cast<uint8_t*>(halves) : int8;
  return Bytes(data, {count}, owner);
}

}  // namespace

KvFormat kv_format_or_raise(std::string_view name) {
  const std::optional<KvFormat> format = parse_kv_format(name);
  if (!format) raise_invalid("kv must be float16 or int8, not \"" + std::string(name) + "\"");
  return *format;
}

void bind_memory(nb::module_& module) {
  nb::class_<KvSlotBitmap>(module, "KvSlotBitmap",
                           "Which KV slots are taken: a lock-free allocator, one bit a slot.")
      .def(
          "__init__",
          [](KvSlotBitmap* self, int slots) {
            if (slots < 0) raise_invalid("slots must not be negative");
            new (self) KvSlotBitmap(slots);
          },
          nb::arg("slots"))
      .def_prop_ro("slots", &KvSlotBitmap::slots)
      .def_prop_ro("available", &KvSlotBitmap::available)
      .def_prop_ro("taken", &KvSlotBitmap::taken)
      .def_prop_ro("peak", &KvSlotBitmap::peak, "The most slots that were ever taken at once.")
      .def("reset_peak", &KvSlotBitmap::reset_peak)
      .def("is_taken", &KvSlotBitmap::is_taken, nb::arg("slot"))
      .def(
          "allocate",
          [](KvSlotBitmap& self, int count) -> std::optional<std::vector<int32_t>> {
            if (count < 0) raise_invalid("count must not be negative");
            std::vector<int32_t> slots(count);
            if (!self.allocate(slots)) return std::nullopt;
            return slots;
          },
          nb::arg("count"),
          "`count` free slots in ascending order, contiguous if possible; None when too few are "
          "free, and then nothing is taken.")
      .def(
          "free",
          [](KvSlotBitmap& self, const std::vector<int32_t>& slots) {
            raise_unless_ok(self.free(slots));
          },
          nb::arg("slots"), "Gives slots back. One that is not taken is refused by name.");

  nb::class_<PrefixTrie>(
      module, "PrefixTrie",
      "Committed prefixes and the KV slots that hold them. A node is the slot of "
      "its token; -1 is the root.")
      .def(nb::init<int>(), nb::arg("slots"))
      .def(
          "acquire",
          [](PrefixTrie& self, const std::vector<int32_t>& tokens) {
            std::vector<int32_t> slots(tokens.size());
            const PrefixTrie::Node node = self.acquire(tokens, slots);
            slots.resize(static_cast<size_t>(self.depth(node)));
            return std::pair(node, slots);
          },
          nb::arg("tokens"), "Holds the longest stored prefix: its node and its slots.")
      .def(
          "extend",
          [](PrefixTrie& self, PrefixTrie::Node held, const std::vector<int32_t>& tokens,
             std::vector<int32_t> slots) {
            if (slots.size() != tokens.size()) raise_invalid("every token needs a slot");
            std::vector<int32_t> duplicates(tokens.size());
            int count = 0;
            const PrefixTrie::Node node = self.extend(held, tokens, slots, duplicates, &count);
            duplicates.resize(static_cast<size_t>(count));
            return std::tuple(node, slots, duplicates);
          },
          nb::arg("held"), nb::arg("tokens"), nb::arg("slots"),
          "Stores `tokens` after `held` and moves the hold: its node, the slots that hold the "
          "tokens, and those of the given ones that somebody else's have made needless.")
      .def("hold", &PrefixTrie::hold, nb::arg("node"))
      .def("release", &PrefixTrie::release, nb::arg("node"))
      .def("shorten", &PrefixTrie::shorten, nb::arg("held"), nb::arg("depth"),
           "Moves a hold to the node `depth` tokens from the start.")
      .def(
          "evict",
          [](PrefixTrie& self, int count) {
            if (count < 0) raise_invalid("count must not be negative");
            std::vector<int32_t> slots(static_cast<size_t>(count));
            slots.resize(static_cast<size_t>(self.evict(slots)));
            return slots;
          },
          nb::arg("count"), "Up to so many slots that nobody holds, the longest unused first.")
      .def("depth", &PrefixTrie::depth, nb::arg("node"))
      .def("references", &PrefixTrie::references, nb::arg("node"))
      .def_prop_ro("stored", &PrefixTrie::stored)
      .def_prop_ro("evictable", &PrefixTrie::evictable, "Those that evict would take at once.");

  nb::class_<KvStore>(
      module, "KvStore",
      "The KV cache of one session, float16 or int8: [layers] of keys and values by slot.")
      .def_static(
          "create",
          [](int layers, int kv_heads, int head_dim, int slots, std::string_view format) {
            return value_or_raise(
                KvStore::create(layers, kv_heads, head_dim, slots, kv_format_or_raise(format)));
          },
          nb::arg("layers"), nb::arg("kv_heads"), nb::arg("head_dim"), nb::arg("slots"),
          nb::arg("format") = "float16", "`slots` is rounded up to a multiple of 16.")
      .def_prop_ro("layers", &KvStore::layers)
      .def_prop_ro("slots", &KvStore::slots)
      .def_prop_ro("format",
                   [](const KvStore& self) { return std::string(kv_format_name(self.format())); })
      .def_prop_ro("bytes_per_slot", &KvStore::bytes_per_slot,
                   "What one token takes, of all layers.")
      .def(
          "keys",
          [](nb::handle_t<KvStore> self, int layer) {
            const KvLayerView view = nb::cast<KvStore&>(self).layer(layer);
            return bytes(view.keys, view.int8_keys, view.layout.key_bytes(), self);
          },
          nb::arg("layer"),
          "A view of the bytes, flat. float16: half bits, [kv_heads, slots / 16, head_dim, 16]. "
          "int8: as kernels/kv_layout.h says.")
      .def(
          "values",
          [](nb::handle_t<KvStore> self, int layer) {
            const KvLayerView view = nb::cast<KvStore&>(self).layer(layer);
            return bytes(view.values, view.int8_values, view.layout.value_bytes(), self);
          },
          nb::arg("layer"),
          "A view of the bytes, flat. float16: half bits, [kv_heads, slots, head_dim]. int8: as "
          "kernels/kv_layout.h says.")
      .def("copy_slot", &KvStore::copy_slot, nb::arg("source"), nb::arg("target"),
           "Copies one slot's K and V of all layers.");
}

}  // namespace sapwood::python
