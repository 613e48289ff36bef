// A model without arithmetic, for testing everything around a model.
//
// Its logits are a hash of the token sequence a row sees, and that sequence is read back from the
// KV store through the slots the row is given. A slot that was copied wrongly, freed too early, put
// in another order or given a wrong position therefore changes the text or is counted as damage. A
// row's hidden states are hashes of its sequence without the first token, of which a draft that
// reads them (fake_draft.h) knows nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/model.h"

namespace sapwood {

class FakeModel final : public Model {
 public:
  struct Options {
    int vocabulary = 40;
    int max_rows = 16;
    int context_length = 4096;
    // Weight of the last two tokens in the logits: what makes the text repeat itself, so that
    // n-grams find something. The rest depends on the whole sequence.
    float habit = 3.f;
  };
  explicit FakeModel(const Options& options);

  const ModelSpec& spec() const override { return spec_; }
  std::string_view host() const override { return "fake"; }
  int max_rows() const override { return options_.max_rows; }
  Status keep_hidden_states(std::span<const int> layers) override;
  std::span<const int> kept_layers() const override { return kept_layers_; }
  std::span<const float> hidden_states() const override { return hidden_states_; }
  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override;

  // What a row shows of itself after `layer`: one number. hash: of_row() of the row before it on
  // its path, or kNoRow, and its token.
  static constexpr uint64_t kNoRow = 99;
  static uint64_t of_row(uint64_t before, int32_t token);
  static float hidden_state(uint64_t hash, int layer);

  // What forward computes for the last token of `text`, without any cache.
  std::vector<float> logits_after(std::span<const int32_t> text) const;

  int damaged_slots = 0;  // slots that did not hold what their place in a row's sequence needs
  int passes = 0;
  int64_t rows = 0;
  int highest_position = -1;
  int fail_pass = -1;  // the number of the pass that returns an error, -1: none
  std::function<void()> before_pass;

 private:
  void write_logits(std::span<const int32_t> text, std::span<float> out) const;

  Options options_;
  ModelSpec spec_;
  std::vector<int32_t> seen_;
  std::vector<int32_t> asked_;  // by row, its place among the logits, or -1
  std::vector<int> kept_layers_;
  std::vector<float> hidden_states_;  // [rows][kept layers]
};

}  // namespace sapwood
