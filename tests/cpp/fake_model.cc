#include "fake_model.h"

#include "model/check_batch.h"

namespace sapwood {
namespace {

constexpr int kLayers = 2;
constexpr int kKvHeads = 2;
constexpr int kHeadDim = 16;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0xD6E8FEB86659FD93u;
  return hash ^ (hash >> 32);
}

// Uniform in [-1, 1).
float signed_unit(uint64_t hash) {
  return static_cast<float>(static_cast<double>(mix(hash, 1) >> 11) * 0x1p-52 - 1.0);
}

uint64_t hash_of(std::span<const int32_t> text) {
  uint64_t hash = 99;
  for (const int32_t token : text) hash = mix(hash, static_cast<uint64_t>(token));
  return hash;
}

// What a slot holds, as halves that any layer, head and dimension can be checked for.
uint16_t mark(uint64_t path_hash, int32_t token, int position, int layer, int head, int dim) {
  if (dim == 0) return static_cast<uint16_t>(token);
  if (dim == 1) return static_cast<uint16_t>(position);
  return static_cast<uint16_t>(mix(path_hash, (layer * kKvHeads + head) * kHeadDim + dim));
}

}  // namespace

FakeModel::FakeModel(const Options& options) : options_(options) {
  spec_.family = "llama";
  spec_.vocabulary_size = options.vocabulary;
  spec_.hidden_size = 1;
  spec_.layers = kLayers;
  spec_.heads = kKvHeads;
  spec_.kv_heads = kKvHeads;
  spec_.head_dim = kHeadDim;
  spec_.context_length = options.context_length;
  seen_.reserve(options.context_length + 1);
  asked_.reserve(options.max_rows);
  hidden_states_.reserve(options.max_rows * (1 + static_cast<size_t>(kLayers)));
}

uint64_t FakeModel::of_row(uint64_t before, int32_t token) {
  return mix(before, static_cast<uint64_t>(token));
}

float FakeModel::hidden_state(uint64_t hash, int layer) {
  return static_cast<float>(mix(hash, static_cast<uint64_t>(layer)) >> 40);  // 24 bits: exact
}

Status FakeModel::keep_hidden_states(std::span<const int> layers) {
  kept_layers_.assign(layers.begin(), layers.end());
  hidden_states_.clear();
  return Status::okay();
}

void FakeModel::write_logits(std::span<const int32_t> text, std::span<float> out) const {
  const uint64_t habit = hash_of(text.subspan(text.size() - std::min<size_t>(text.size(), 2)));
  const uint64_t whole = hash_of(text);
  for (int token = 0; token < options_.vocabulary; ++token) {
    out[token] =
        options_.habit * signed_unit(mix(habit, token)) + 0.7f * signed_unit(mix(whole, token));
  }
}

std::vector<float> FakeModel::logits_after(std::span<const int32_t> text) const {
  std::vector<float> logits(options_.vocabulary);
  write_logits(text, logits);
  return logits;
}

Status FakeModel::forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) {
  if (before_pass) before_pass();
  SAPWOOD_TRY(check_batch(batch, spec_, kv, options_.max_rows, logits.size()));
  if (passes++ == fail_pass) return Status(Code::kInternal, "this pass was told to fail");
  rows += batch.rows();
  const KvLayout& layout = kv.layout();
  hidden_states_.clear();
  asked_.assign(batch.rows(), -1);
  for (size_t o = 0; o < batch.output_rows.size(); ++o) {
    asked_[batch.output_rows[o]] = static_cast<int32_t>(o);
  }
  for (int row = 0; row < batch.rows(); ++row) {
    highest_position = std::max(highest_position, batch.positions[row]);
    const std::span<const int32_t> path = batch.path_slots.subspan(
        batch.path_begin[row], batch.path_end[row] - batch.path_begin[row]);
    seen_.clear();
    uint64_t hash = 99;
    const size_t before = batch.context_slots.size() + path.size() - 1;
    for (size_t j = 0; j < before; ++j) {
      const int32_t slot = j < batch.context_slots.size() ? batch.context_slots[j]
                                                          : path[j - batch.context_slots.size()];
      const KvLayerView first = kv.layer(0);
      const int32_t token = first.keys[layout.key_offset(0, slot, 0)];
      seen_.push_back(token);
      hash = mix(hash, static_cast<uint64_t>(token));
      bool whole = true;
      for (int layer = 0; layer < kLayers; ++layer) {
        const KvLayerView view = kv.layer(layer);
        for (int head = 0; head < kKvHeads; ++head) {
          for (int dim = 0; dim < kHeadDim; ++dim) {
            const uint16_t want = mark(hash, token, static_cast<int>(j), layer, head, dim);
            whole = whole && view.keys[layout.key_offset(head, slot, dim)] == want &&
                    view.values[layout.value_offset(head, slot, dim)] == want;
          }
        }
      }
      if (!whole) ++damaged_slots;
    }
    const int32_t token = batch.tokens[row];
    seen_.push_back(token);
    hash = mix(hash, static_cast<uint64_t>(token));
    for (int layer = 0; layer < kLayers; ++layer) {
      const KvLayerView view = kv.layer(layer);
      for (int head = 0; head < kKvHeads; ++head) {
        for (int dim = 0; dim < kHeadDim; ++dim) {
          const uint16_t half = mark(hash, token, batch.positions[row], layer, head, dim);
          view.keys[layout.key_offset(head, batch.slots[row], dim)] = half;
          view.values[layout.value_offset(head, batch.slots[row], dim)] = half;
        }
      }
    }
    uint64_t shown = kNoRow;
    for (size_t j = 1; j < seen_.size() && !kept_layers_.empty(); ++j) {
      shown = of_row(shown, seen_[j]);
    }
    for (const int layer : kept_layers_) hidden_states_.push_back(hidden_state(shown, layer));
    if (asked_[row] >= 0) {
      write_logits(seen_, logits.subspan(static_cast<size_t>(asked_[row]) * options_.vocabulary,
                                         options_.vocabulary));
    }
  }
  return Status::okay();
}

}  // namespace sapwood
