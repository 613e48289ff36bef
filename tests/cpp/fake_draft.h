// A trained draft without arithmetic, for targets that are fake models (fake_model.h).
//
// It has the habits of such a model and its own mind beyond. Of everything it is given it knows
// what it must be: hidden states of another position or pass, a child in the pass of its parent,
// and rows that its cache does not hold in order are counted as damage.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "draft/trained_draft.h"

namespace sapwood {

struct FakeDraft final : TrainedDraft {
  struct Options {
    int vocabulary = 40;
    int max_rows = 24;
    int context_length = 4096;
    float habit = 9.f;
    int left_out = 7;     // every so many-th token has no place in its laws; 0: all have one
    int max_depth = 256;  // of nodes it looks beyond
  };

  explicit FakeDraft(const Options& the_options, std::string_view the_name = "head")
      : options(the_options), name(the_name) {}
  std::string_view drafter() const override { return name; }
  std::unique_ptr<DraftNetwork> make_network() const override;

  const Options options;
  const std::string_view name;
  // Of all its networks.
  struct Counts {
    int damage = 0;
    int passes = 0;
    int64_t text_rows = 0;
    int64_t nodes = 0;
  };
  const std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  // By cache and slot, the sequence of the row that lies there, by FakeModel::of_row.
  using Slots = std::map<const KvStore*, std::vector<uint64_t>>;
  const std::shared_ptr<Slots> slots = std::make_shared<Slots>();
};

}  // namespace sapwood
