#include "operators/cache_arguments.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "kernels/attention_limits.h"

namespace sapwood::operators {
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

// The rows' paths, taken apart into begin and end, and checked.
Status read_paths(const Tensor& ranges, std::span<const int32_t> path_slots,
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
      return Status(Code::kInvalidArgument, "input 'path_ranges' gives row " + std::to_string(row) +
                                                " the path " + std::to_string(begin[row]) + " to " +
                                                std::to_string(end[row]) + " of " +
                                                std::to_string(path_slots.size()));
    }
    if (path_slots[end[row] - 1] != slots[row]) {
      return Status(Code::kInvalidArgument, "input 'path_ranges' gives row " + std::to_string(row) +
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

}  // namespace

Status open_cache(const CacheArguments& arguments, int rows, int kv_heads, int head_dim,
                  Resources& resources, CacheCall* out) {
  const Tensor& keys = arguments.past_keys;
  SAPWOOD_TRY(expect_shape("past_keys", keys, {kv_heads, kAny, head_dim, kKeyTile}));
  const int64_t slot_count = keys.shape[1] * kKeyTile;
  SAPWOOD_TRY(expect_shape("past_values", arguments.past_values, {kv_heads, slot_count, head_dim}));
  if (slot_count > std::numeric_limits<int>::max()) {
    return Status(Code::kInvalidArgument, "the cache has more than 2^31 slots");
  }
  SAPWOOD_TRY(expect_shape("slots", arguments.slots, {rows}));
  SAPWOOD_TRY(expect_shape("context_slots", arguments.context_slots, {kAny}));
  SAPWOOD_TRY(expect_shape("path_slots", arguments.path_slots, {kAny}));
  SAPWOOD_TRY(expect_shape("path_ranges", arguments.path_ranges, {rows, 2}));
  out->batch.slots = arguments.slots.indices();
  out->batch.context_slots = arguments.context_slots.indices();
  out->batch.path_slots = arguments.path_slots.indices();
  const int limit = static_cast<int>(slot_count);
  for (const auto& [name, indices] :
       {std::pair{"slots", out->batch.slots}, std::pair{"context_slots", out->batch.context_slots},
        std::pair{"path_slots", out->batch.path_slots}}) {
    SAPWOOD_TRY(check_range(name, indices, limit));
  }
  out->batch.tokens = out->batch.slots;  // attention asks for their number only
  out->kv.layout = KvLayout{kv_heads, head_dim, limit};
  return read_paths(arguments.path_ranges, out->batch.path_slots, out->batch.slots,
                    out->batch.context(), resources, out);
}

Status check_cache_alignment(const void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % kAlignment == 0) return Status::okay();
  return Status(Code::kInvalidArgument,
                "the memory bound to the present keys or values does not lie at a multiple of 64 "
                "bytes; let the host allocate it, or align it");
}

Status check_heads(const AttentionShape& shape) {
  const auto error = [&](Code code, const std::string& what) {
    return Status(code, std::to_string(shape.heads) + " heads over " +
                            std::to_string(shape.kv_heads) + " key-value heads" + what);
  };
  if (shape.heads < 1 || shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    return error(Code::kInvalidArgument, " make no whole groups");
  }
  if (shape.heads / shape.kv_heads > kMaxGroup) {
    return error(Code::kUnsupported, " make groups of more than " + std::to_string(kMaxGroup) +
                                         ", which the kernels cannot hold");
  }
  if (shape.heads > kMostHeads || shape.head_dim > kMostHeadDim) {
    return error(Code::kUnsupported,
                 " of " + std::to_string(shape.head_dim) + " values are more than any model has");
  }
  if (shape.head_dim < 1 || shape.head_dim % 16 != 0) {
    return Status(Code::kInvalidArgument, "heads of " + std::to_string(shape.head_dim) +
                                              " values are not a multiple of 16");
  }
  return Status::okay();
}

Status check_output_rows(std::span<const int32_t> output_rows, int64_t rows) {
  for (const int32_t row : output_rows) {
    if (row < 0 || row >= rows) {
      return Status(Code::kInvalidArgument, "input 'output_rows' asks for row " +
                                                std::to_string(row) + " of " +
                                                std::to_string(rows));
    }
  }
  return Status::okay();
}

Status check_tokens(std::span<const int32_t> tokens, int vocabulary) {
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocabulary) {
      return Status(Code::kInvalidArgument, "input 'token_ids' holds " + std::to_string(token) +
                                                ", but the vocabulary has " +
                                                std::to_string(vocabulary) + " tokens");
    }
  }
  return Status::okay();
}

}  // namespace sapwood::operators
