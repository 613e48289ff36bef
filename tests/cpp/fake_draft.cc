#include "fake_draft.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "fake_model.h"

namespace sapwood {
namespace {

constexpr std::array<int, 2> kLayers = {1, 2};

class FakeNetwork final : public DraftNetwork {
 public:
  FakeNetwork(const FakeDraft::Options& options, std::shared_ptr<FakeDraft::Counts> counts,
              std::shared_ptr<FakeDraft::Slots> slots)
      : options_(options),
        counts_(std::move(counts)),
        slots_(std::move(slots)),
        model_({.vocabulary = options.vocabulary,
                .max_rows = options.max_rows,
                .context_length = options.context_length,
                .habit = options.habit}),
        of_node_(1 + DraftTree::kCapacity),
        logits_(static_cast<size_t>(options.max_rows) * options.vocabulary) {
    for (int token = 0; token < options.vocabulary; ++token) {
      const bool left_out = options.left_out > 0 && token % options.left_out == 3;
      if (!left_out) ids_.push_back(token);
    }
  }

  int vocabulary_size() const override { return options_.vocabulary; }
  int context_length() const override { return options_.context_length; }
  int max_rows() const override { return options_.max_rows; }
  int max_depth() const override { return options_.max_depth; }
  int law_size() const override { return static_cast<int>(ids_.size()); }
  std::span<const int32_t> token_ids() const override { return ids_; }
  int entry_of(int32_t token) const override {
    const auto found = std::ranges::find(ids_, token);
    return found == ids_.end() ? -1 : static_cast<int>(found - ids_.begin());
  }
  int skipped_tokens() const override { return 1; }
  std::span<const int> hidden_layers() const override { return kLayers; }
  int hidden_state_size() const override { return static_cast<int>(kLayers.size()); }
  Result<std::unique_ptr<KvStore>> make_kv(int slots) const override {
    const ModelSpec& spec = model_.spec();
    Result<std::unique_ptr<KvStore>> kv =
        KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, slots);
    (*slots_)[kv.value().get()].assign(static_cast<size_t>(kv.value()->slots()), 0);
    return kv;
  }
  std::optional<float> uncertainty(int node) override {
    return static_cast<float>(of_node_[node + 1] % 100) / 99.f;
  }

  void move_node(int from, int to) override {
    of_node_[to + 1] = of_node_[from + 1];
    root_moved_ = root_moved_ || to == DraftTree::kRoot;
  }

  Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) override {
    ++counts_->passes;
    counts_->text_rows += pass.text_rows;
    counts_->nodes += pass.nodes.size() - pass.first_node;
    const RowBatch& batch = pass.batch;
    std::vector<uint64_t>& of_slot = slots_->at(kv);
    require(pass.hidden_states.size() == pass.text_rows * kLayers.size());
    for (int row = 0; row < pass.text_rows; ++row) {
      const uint64_t before =
          batch.positions[row] == 0 ? FakeModel::kNoRow : of_slot[before_of(batch, row)];
      for (size_t i = 0; i < kLayers.size(); ++i) {
        require(pass.hidden_states[row * kLayers.size() + i] ==
                FakeModel::hidden_state(before, kLayers[i]));
      }
      of_slot[batch.slots[row]] = FakeModel::of_row(before, batch.tokens[row]);
      // A pass that only reads says nothing of the text's end.
      if (!batch.output_rows.empty()) of_node_[0] = of_slot[batch.slots[row]];
    }
    for (int node = pass.first_node; node < pass.nodes.size(); ++node) {
      const int row = pass.text_rows + node - pass.first_node;
      const int parent = pass.nodes.parent(node);
      require(parent < pass.first_node &&
              (parent != DraftTree::kRoot || pass.text_rows == 0 || root_moved_));
      // Whether the slots on its path hold this very sequence is seen by the model below.
      of_node_[node + 1] = FakeModel::of_row(of_node_[parent + 1], batch.tokens[row]);
    }
    root_moved_ = root_moved_ && (pass.text_rows == 0 || batch.output_rows.empty());
    const size_t outputs = batch.output_rows.size();
    const size_t vocabulary = static_cast<size_t>(options_.vocabulary);
    const int damaged = model_.damaged_slots;
    SAPWOOD_TRY(model_.forward(batch, *kv, {logits_.data(), outputs * vocabulary}));
    require(model_.damaged_slots == damaged);
    for (size_t o = 0; o < outputs; ++o) {
      for (size_t i = 0; i < ids_.size(); ++i) {
        logits[o * ids_.size() + i] = logits_[o * vocabulary + static_cast<size_t>(ids_[i])];
      }
    }
    return Status::okay();
  }

 private:
  void require(bool holds) { counts_->damage += holds ? 0 : 1; }

  // The slot of the row before this one on its path.
  static int32_t before_of(const RowBatch& batch, int row) {
    const int end = batch.path_end[row];
    return end - batch.path_begin[row] > 1 ? batch.path_slots[end - 2] : batch.context_slots.back();
  }

  const FakeDraft::Options options_;
  const std::shared_ptr<FakeDraft::Counts> counts_;
  const std::shared_ptr<FakeDraft::Slots> slots_;
  FakeModel model_;
  std::vector<int32_t> ids_;
  std::vector<uint64_t> of_node_;  // by node + 1, as FakeDraft::Slots
  bool root_moved_ = false;        // the text's end is a node that was looked beyond
  std::vector<float> logits_;
};

}  // namespace

std::unique_ptr<DraftNetwork> FakeDraft::make_network() const {
  return std::make_unique<FakeNetwork>(options, counts, slots);
}

}  // namespace sapwood
