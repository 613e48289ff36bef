// Looking ahead while the target verifies, and what that was worth.
#include <algorithm>
#include <bitset>

#include "draft/model_drafter.h"

namespace sapwood {
namespace {

// A look beyond a guess that the text comes by less often is not worth a row.
constexpr float kLeastOften = 0.002f;

// Rows of one pass: what it finds decides where the next one looks.
constexpr int kRowsAhead = 16;

constexpr double kPaceMemory = 0.2;  // weight of the latest pass in the average

}  // namespace

// Of all guesses that were not looked beyond, in the tree or not, those that the text comes by most
// often: where it leaves the tree is where the next one begins.
bool ModelDrafter::look_ahead(const DraftRequest& request) {
  if (request.growth != Growth::kBudgeted || !cache_.can_keep()) return false;
  level_.clear();
  const size_t most = static_cast<size_t>(rows_ahead(request.deadline));
  if (most == 0) {
    // One slow pass is not to be the last one.
    if (!looked_ahead_) pace_ahead_ += (1 - pace_ahead_) * kPaceMemory;
    return false;
  }
  if (may_look_beyond(GuessPool::kRoot, request)) {
    level_.push_back(GuessPool::kRoot);
  } else {
    for (const int16_t guess : pool_.by_chance(kLeastOften)) {
      if (level_.size() == most) break;
      if (pool_.at(pool_.at(guess).parent).node != GuessPool::kNone &&
          may_look_beyond(guess, request)) {
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
  const Clock::time_point begin = Clock::now();
  double usual_ms = 0;
  const Status looked = look_beyond_level([&](int guess) { return expand(guess, all); }, &usual_ms);
  weighs_passes_ = true;
  if (usual_ms > 0) {
    pace_ahead_ += (seconds_since(begin) * 1e3 / usual_ms - pace_ahead_) * kPaceMemory;
  }
  if (!looked.ok()) {
    for (const int16_t guess : level_) pool_.at(guess).node = GuessPool::kNone;
  }
  return looked.ok();
}

// A pass that is running when the target has spoken is waited for: it has no more rows than there
// is time for, and the time of two small ones is left over, since the target's varies too.
int ModelDrafter::rows_ahead(Deadline deadline) const {
  int rows =
      std::min({kRowsAhead, cache_.max_nodes(), DraftTree::kCapacity - cache_.nodes().size()});
  if (deadline == kNoDeadline) return rows;
  const double left_ms =
      -seconds_since(deadline) * 1e3 - pace_ahead_ * 2 * options_.cost.milliseconds(1);
  const int unread = std::max(cache_.unread(), 0);
  while (rows > 0 && pace_ahead_ * options_.cost.milliseconds(rows + unread) > left_ms) --rows;
  return rows;
}

// Of each depth that the tree reaches: a pass over the guesses that were looked beyond ahead. The
// first would have read the text's new rows too.
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
  if (rows[0] > 0) rows[0] += std::clamp(cache_.unread() - 1, 0, kUnreadCounted - 1);
  for (int depth = 0; depth < depths; ++depth) {
    if (rows[depth] > 0) saved_ms_ += options_.cost.milliseconds(rows[depth]);
  }
}

}  // namespace sapwood
