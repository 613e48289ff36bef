#include "operators/onnxruntime/cache_inputs.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/attention_limits.h"

namespace sapwood::ort {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kMostHeads = 1 << 12;
constexpr int kMostHeadDim = 1 << 12;

Status out_of_range(const char* input, int64_t value, int64_t limit) {
  return Status(Code::kInvalidArgument, std::string("input '") + input + "' holds " +
                                            std::to_string(value) + ", not a value from 0 to " +
                                            std::to_string(limit - 1));
}

// All values from 0 to limit - 1. One pass that compilers turn into vector code.
Status check_range(const char* input, std::span<const int32_t> values, int limit) {
  uint32_t largest = 0;
  for (const int32_t value : values) largest = std::max(largest, static_cast<uint32_t>(value));
  if (values.empty() || largest < static_cast<uint32_t>(limit)) return Status::okay();
  return out_of_range(input, static_cast<int32_t>(largest), limit);
}

std::span<const int32_t> indices(const Tensor& tensor) {
  return {tensor.as<int32_t>(), static_cast<size_t>(tensor.elements())};
}

// The rows' paths, taken apart into begin and end, and checked.
Status read_paths(const char* name, const Tensor& ranges, std::span<const int32_t> path_slots,
                  std::span<const int32_t> slots, int context, Resources& resources,
                  CacheCall* out) {
  const int rows = static_cast<int>(slots.size());
  int32_t* begin = resources.path_begin.at_least(rows);
  int32_t* end = resources.path_end.at_least(rows);
  int32_t* positions = resources.positions.at_least(rows);
  const int32_t* range = ranges.as<int32_t>();
  int longest = 0;
  for (int row = 0; row < rows; ++row) {
    begin[row] = range[2 * row];
    end[row] = range[2 * row + 1];
    if (begin[row] < 0 || end[row] <= begin[row] ||
        end[row] > static_cast<int64_t>(path_slots.size())) {
      return Status(Code::kInvalidArgument,
                    std::string("input '") + name + "' gives row " + std::to_string(row) +
                        " the path " + std::to_string(begin[row]) + " to " +
                        std::to_string(end[row]) + " of " + std::to_string(path_slots.size()));
    }
    if (path_slots[end[row] - 1] != slots[row]) {
      return Status(Code::kInvalidArgument, std::string("input '") + name + "' gives row " +
                                                std::to_string(row) +
                                                " a path that does not end at its own slot");
    }
    longest = std::max(longest, end[row] - begin[row]);
    positions[row] = context + end[row] - begin[row] - 1;
  }
  const size_t count = slots.size();
  out->batch.path_begin = {begin, count};
  out->batch.path_end = {end, count};
  out->batch.positions = {positions, count};
  out->visible_tokens = context + longest;
  return Status::okay();
}

// Gives the output the past's contents, unless it is the past.
Status open_present(KernelCall& call, size_t output, const Tensor& past, uint16_t** present) {
  SAPWOOD_TRY(call.write(output, past.shape, present));
  if (*present != past.data) {
    std::memcpy(*present, past.data, static_cast<size_t>(past.elements()) * sizeof(uint16_t));
  }
  if (reinterpret_cast<uintptr_t>(*present) % kAlignment != 0) {
    return Status(Code::kInvalidArgument,
                  "the memory bound to the present keys or values does not lie at a multiple of 64 "
                  "bytes; let ONNX Runtime allocate it, or align it");
  }
  return Status::okay();
}

}  // namespace

Status open_cache(KernelCall& call, const CachePorts& ports, int rows, int kv_heads, int head_dim,
                  Resources& resources, CacheCall* out) {
  Tensor slots, context, paths, ranges, keys, values;
  SAPWOOD_TRY(call.read(ports.past_keys(), {kv_heads, kAny, head_dim, kKeyTile}, &keys));
  const int64_t slot_count = keys.shape[1] * kKeyTile;
  SAPWOOD_TRY(call.read(ports.past_values(), {kv_heads, slot_count, head_dim}, &values));
  if (slot_count > std::numeric_limits<int>::max()) {
    return Status(Code::kInvalidArgument, "the cache has more than 2^31 slots");
  }
  SAPWOOD_TRY(call.read(ports.slots(), {rows}, &slots));
  SAPWOOD_TRY(call.read(ports.context_slots(), {kAny}, &context));
  SAPWOOD_TRY(call.read(ports.path_slots(), {kAny}, &paths));
  SAPWOOD_TRY(call.read(ports.path_ranges(), {rows, 2}, &ranges));
  const int limit = static_cast<int>(slot_count);
  for (const auto& [port, tensor] :
       {std::pair{ports.slots(), &slots}, std::pair{ports.context_slots(), &context},
        std::pair{ports.path_slots(), &paths}}) {
    SAPWOOD_TRY(check_range(call.input_name(port), indices(*tensor), limit));
  }
  out->batch.slots = indices(slots);
  out->batch.context_slots = indices(context);
  out->batch.path_slots = indices(paths);
  out->batch.tokens = out->batch.slots;  // attention asks for their number only
  SAPWOOD_TRY(read_paths(call.input_name(ports.path_ranges()), ranges, indices(paths),
                         indices(slots), out->batch.context(), resources, out));
  out->kv.layout = KvLayout{kv_heads, head_dim, limit};
  SAPWOOD_TRY(open_present(call, ports.first_output, keys, &out->kv.keys));
  return open_present(call, ports.first_output + 1, values, &out->kv.values);
}

Status check_heads(const AttentionShape& shape) {
  const std::string heads = std::to_string(shape.heads) + " heads over " +
                            std::to_string(shape.kv_heads) + " key-value heads";
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    return Status(Code::kInvalidArgument, heads + " make no whole groups");
  }
  if (shape.heads / shape.kv_heads > kMaxGroup) {
    return Status(Code::kUnsupported, heads + " make groups of more than " +
                                          std::to_string(kMaxGroup) +
                                          ", which the kernels cannot hold");
  }
  if (shape.heads > kMostHeads || shape.head_dim > kMostHeadDim) {
    return Status(Code::kUnsupported, heads + " of " + std::to_string(shape.head_dim) +
                                          " values are more than any model has");
  }
  if (shape.head_dim < 1 || shape.head_dim % 16 != 0) {
    return Status(Code::kInvalidArgument, "heads of " + std::to_string(shape.head_dim) +
                                              " values are not a multiple of 16");
  }
  return Status::okay();
}

Status infer_cache(ShapeInference& shapes, const CachePorts& ports, const Dim& rows, int kv_heads,
                   int head_dim) {
  SAPWOOD_TRY(shapes.expect(ports.slots(), {rows.size}));
  SAPWOOD_TRY(shapes.expect(ports.context_slots(), {kAny}));
  SAPWOOD_TRY(shapes.expect(ports.path_slots(), {kAny}));
  SAPWOOD_TRY(shapes.expect(ports.path_ranges(), {rows.size, 2}));
  SAPWOOD_TRY(shapes.expect(ports.past_keys(), {kv_heads, kAny, head_dim, kKeyTile}));
  SAPWOOD_TRY(shapes.expect(ports.past_values(), {kv_heads, kAny, head_dim}));
  SAPWOOD_TRY(shapes.set_output(ports.first_output,
                                {kv_heads, shapes.dim(ports.past_keys(), 1), head_dim, kKeyTile}));
  return shapes.set_output(ports.first_output + 1,
                           {kv_heads, shapes.dim(ports.past_values(), 1), head_dim});
}

}  // namespace sapwood::ort
