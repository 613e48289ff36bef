// Random inputs for the kernel tests: packed weights, rows, batches and caches.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "kernels/kernels.h"

namespace sapwood::testing {

using Random = std::mt19937;

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

struct Cache {
  std::vector<uint16_t> keys, values;
  KvLayerView view;

  Cache(Random& random, const KvLayout& layout)
      : keys(layout.elements()), values(layout.elements()) {
    std::normal_distribution<float> normal(0.0f, 1.0f);
    for (uint16_t& half : keys) half = float_to_half(normal(random));
    for (uint16_t& half : values) half = float_to_half(normal(random));
    view = {layout, keys.data(), values.data()};
  }
};

}  // namespace sapwood::testing
