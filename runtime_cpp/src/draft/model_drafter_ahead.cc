// Looking ahead while the target verifies, and what that was worth.
#include <algorithm>
#include <bitset>

#include "draft/model_drafter.h"

namespace sapwood {
namespace {

// A look beyond a guess that the text comes by less often is not worth a row.
constexpr float kLeastOften = 0.005f;

// Rows of one pass. More bring more a pass, but the one that is running when the target has spoken
// is waited for.
constexpr size_t kRowsAhead = 16;

}  // namespace

// Of all guesses that were not looked beyond, in the tree or not, those that the text comes by most
// often: where it leaves the tree is where the next one begins.
bool ModelDrafter::look_ahead(const DraftRequest& request) {
  if (request.growth != Growth::kBudgeted || !cache_.can_keep()) return false;
  level_.clear();
  const size_t most = std::min({kRowsAhead, static_cast<size_t>(cache_.max_nodes()),
                                static_cast<size_t>(DraftTree::kCapacity - cache_.nodes().size())});
  if (may_look_beyond(GuessPool::kRoot, request)) {
    level_.push_back(GuessPool::kRoot);
  } else {
    for (const int16_t guess : pool_.by_path_acceptance()) {
      const GuessPool::Guess& g = pool_.at(guess);
      if (level_.size() == most || g.path_acceptance < kLeastOften) break;
      if (pool_.at(g.parent).node != GuessPool::kNone && may_look_beyond(guess, request)) {
        level_.push_back(guess);
      }
    }
  }
  if (level_.empty()) return false;
  looked_ahead_ = true;
  weighs_passes_ = false;
  // What the text leaves the tree by is what was not expected: all candidates stay.
  DraftRequest all = request;
  all.pruning = nullptr;
  const Status looked = look_beyond_level([&](int guess) { return expand(guess, all); }, nullptr);
  weighs_passes_ = true;
  if (!looked.ok()) {
    for (const int16_t guess : level_) pool_.at(guess).node = GuessPool::kNone;
  }
  return looked.ok();
}

// Of each depth that the tree reaches: a pass over the guesses that were looked beyond ahead.
void ModelDrafter::count_saved(std::span<const int16_t> selected) {
  std::bitset<DraftTree::kCapacity + 1> counted;  // by node of the cache, the root first
  std::array<int, DraftTree::kCapacity> rows{};   // by depth
  int depths = 0;
  for (const int16_t guess : selected) {
    const GuessPool::Guess& parent = pool_.at(pool_.at(guess).parent);
    if (parent.node == GuessPool::kNone || parent.node >= kept_nodes_ ||
        counted.test(static_cast<size_t>(parent.node + 1))) {
      continue;
    }
    counted.set(static_cast<size_t>(parent.node + 1));
    ++rows[parent.depth];
    depths = std::max(depths, parent.depth + 1);
  }
  for (int depth = 0; depth < depths; ++depth) {
    if (rows[depth] > 0) saved_ms_ += options_.cost.milliseconds(rows[depth]);
  }
}

}  // namespace sapwood
