#include "model/check_batch.h"

#include <string>

namespace sapwood {
namespace {

Status wrong(const std::string& what) { return {Code::kInvalidArgument, "batch: " + what}; }

bool within(std::span<const int32_t> values, int limit) {
  for (const int32_t value : values) {
    if (value < 0 || value >= limit) return false;
  }
  return true;
}

}  // namespace

Status check_batch(const RowBatch& batch, const ModelSpec& spec, const KvStore& kv, int max_rows,
                   size_t logits_size) {
  const size_t rows = batch.tokens.size();
  if (rows == 0) return wrong("has no rows");
  if (rows > static_cast<size_t>(max_rows)) {
    return wrong("has " + std::to_string(rows) + " rows, this model takes " +
                 std::to_string(max_rows) + " at once");
  }
  if (batch.positions.size() != rows || batch.slots.size() != rows ||
      batch.path_begin.size() != rows || batch.path_end.size() != rows) {
    return wrong("tokens, positions, slots and path ranges differ in length");
  }
  if (kv.layers() != spec.layers || kv.layout().kv_heads != spec.kv_heads ||
      kv.layout().head_dim != spec.head_dim) {
    return wrong("the KV store was made for another model");
  }
  if (!within(batch.tokens, spec.vocabulary_size)) {
    return wrong("a token is outside the vocabulary of " + std::to_string(spec.vocabulary_size));
  }
  if (!within(batch.slots, kv.slots()) || !within(batch.context_slots, kv.slots()) ||
      !within(batch.path_slots, kv.slots())) {
    return wrong("a slot is outside the KV store of " + std::to_string(kv.slots()));
  }
  if (!within(batch.output_rows, static_cast<int>(rows))) {
    return wrong("an output row is outside its " + std::to_string(rows) + " rows");
  }
  if (logits_size < batch.output_rows.size() * static_cast<size_t>(spec.vocabulary_size)) {
    return wrong("the logits do not fit " + std::to_string(batch.output_rows.size()) + " rows");
  }
  const int context = batch.context();
  const int path_size = static_cast<int>(batch.path_slots.size());
  for (size_t row = 0; row < rows; ++row) {
    const int begin = batch.path_begin[row];
    const int end = batch.path_end[row];
    if (begin < 0 || end <= begin || end > path_size || context + end - begin > kv.slots() ||
        batch.positions[row] != context + end - begin - 1 ||
        batch.path_slots[end - 1] != batch.slots[row]) {
      return wrong("the path of row " + std::to_string(row) +
                   " does not fit its position and slot");
    }
  }
  return Status::okay();
}

Status check_format(const Model& model, KvFormat format) {
  if (model.takes(format)) return Status::okay();
  return {Code::kUnsupported, "the host " + std::string(model.host()) + " takes no " +
                                  std::string(kv_format_name(format)) +
                                  " KV cache; use the host native, or a float16 cache"};
}

}  // namespace sapwood
