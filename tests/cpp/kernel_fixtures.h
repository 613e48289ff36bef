// Random inputs for the kernel tests: packed weights, rows, batches and caches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "kernels/kernels.h"
#include "memory/kv_store.h"

namespace sapwood::testing {

using Random = std::mt19937;

inline const KernelTable& scalar() { return *runnable_kernels().front(); }

// As the names of tests may have it.
inline std::string table_name(const KernelTable& table) {
  std::string name(table.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::vector<float> random_floats(Random& random, size_t count, float spread = 1.0f) {
  std::normal_distribution<float> normal(0.0f, spread);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// A packed matrix of random codes with scales and minima of the size a real one has.
struct PackedMatrix {
  std::vector<uint8_t> bytes;
  LinearWeights weights;

  PackedMatrix(Random& random, const LinearFormat& format, int outputs, int inputs) {
    weights = {nullptr, outputs, inputs, format};
    bytes.resize(weights.bytes());
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    std::uniform_real_distribution<float> scale(0.001f, 0.02f);
    const size_t codes = static_cast<size_t>(format.group) * kPanel * format.bits / 8;
    for (size_t group = 0; group < bytes.size(); group += format.group_bytes()) {
      for (int i = 0; i < kPanel * (format.has_min ? 2 : 1); ++i) {
        const float sign = i < kPanel ? 1.0f : -8.0f;
        const uint16_t half = float_to_half(sign * scale(random));
        std::memcpy(&bytes[group + codes + i * 2], &half, 2);
      }
    }
    weights.data = bytes.data();
  }
};

// Rows quantised by one table, with the memory they live in.
struct Activations {
  std::vector<int8_t> codes;
  std::vector<float> scales, scaled_sums;
  std::vector<int32_t> sums;
  QuantizedRows rows;

  Activations(const KernelTable& kernel, const std::vector<float>& x, int count, int inputs)
      : codes(x.size()), scales(x.size() / 32), scaled_sums(x.size() / 32), sums(x.size() / 32) {
    rows = {codes.data(), scales.data(), sums.data(), scaled_sums.data(), inputs};
    kernel.quantize_rows(x.data(), inputs, inputs, 0, count, rows);
  }
};

// A random tree (or, with width 1, a chain) on top of a committed prefix, over scattered slots.
struct TreeBatch {
  std::vector<int32_t> tokens, positions, slots, context, paths, begin, end, outputs;

  // shuffle: scatter the slots over [0, slot_count), else use them in order.
  TreeBatch(Random& random, int rows, int context_length, int slot_count, bool chain,
            bool shuffle) {
    std::vector<int32_t> order(slot_count);
    for (int i = 0; i < slot_count; ++i) order[i] = i;
    if (shuffle) std::shuffle(order.begin(), order.end(), random);
    context.assign(order.begin(), order.begin() + context_length);
    std::vector<std::vector<int32_t>> own(rows);
    for (int row = 0; row < rows; ++row) {
      slots.push_back(order[context_length + row]);
      tokens.push_back(static_cast<int32_t>(random() % 50));
      if (row > 0) own[row] = own[chain ? row - 1 : random() % row];
      own[row].push_back(slots[row]);
      positions.push_back(context_length + static_cast<int32_t>(own[row].size()) - 1);
      begin.push_back(static_cast<int32_t>(paths.size()));
      paths.insert(paths.end(), own[row].begin(), own[row].end());
      end.push_back(static_cast<int32_t>(paths.size()));
      outputs.push_back(row);
    }
    if (chain) {  // one flat path that the rows share
      paths = own.back();
      for (int row = 0; row < rows; ++row) begin[row] = 0, end[row] = row + 1;
    }
  }

  RowBatch batch() const { return {tokens, positions, slots, context, paths, begin, end, outputs}; }

  // The pass that computes only this row, over the same slots.
  RowBatch single(int row) const {
    const std::span<const int32_t> all_begin(begin), all_end(end);
    return {std::span(tokens).subspan(row, 1),
            std::span(positions).subspan(row, 1),
            std::span(slots).subspan(row, 1),
            context,
            paths,
            all_begin.subspan(row, 1),
            all_end.subspan(row, 1),
            std::span(outputs).subspan(0, 1)};
  }
};

inline bool same_contents(const KvStore& a, const KvStore& b) {
  for (int layer = 0; layer < a.layers(); ++layer) {
    const KvLayerView x = a.layer(layer), y = b.layer(layer);
    const bool int8 = a.format() == KvFormat::kInt8;
    const auto same = [](const void* p, const void* q, size_t bytes) {
      return std::memcmp(p, q, bytes) == 0;
    };
    if (!(int8 ? same(x.int8_keys, y.int8_keys, x.layout.key_bytes()) &&
                     same(x.int8_values, y.int8_values, x.layout.value_bytes())
               : same(x.keys, y.keys, x.layout.key_bytes()) &&
                     same(x.values, y.values, x.layout.value_bytes()))) {
      return false;
    }
  }
  return true;
}

// A cache of one layer, and the floats that were stored in it.
struct Cache {
  std::vector<float> keys, values;  // [kv_heads][slots][head_dim]
  std::unique_ptr<KvStore> store;
  KvLayerView view;

  Cache(Random& random, const KvLayout& layout)
      : keys(random_floats(random, layout.elements())),
        values(random_floats(random, layout.elements())) {
    std::vector<int32_t> in_order(layout.slots);
    for (int slot = 0; slot < layout.slots; ++slot) in_order[slot] = slot;
    fill(layout, in_order);
  }

  // The same contents, what was in a slot being in slot moved[slot].
  Cache(const Cache& other, const std::vector<int32_t>& moved)
      : keys(other.keys), values(other.values) {
    fill(other.view.layout, moved);
  }

 private:
  void fill(const KvLayout& layout, const std::vector<int32_t>& moved) {
    store = std::move(
        KvStore::create(1, layout.kv_heads, layout.head_dim, layout.slots, layout.format).value());
    view = store->layer(0);
    for (int head = 0; head < layout.kv_heads; ++head) {
      for (int slot = 0; slot < layout.slots; ++slot) {
        const size_t from = layout.value_offset(head, slot, 0);
        scalar().store_kv(view, head, moved[slot], &keys[from], &values[from]);
      }
    }
  }
};

}  // namespace sapwood::testing
