#include "engine/strategy.h"

#include <algorithm>

namespace sapwood {

std::string_view strategy_name(Strategy strategy) {
  constexpr std::array<std::string_view, kStrategies> kNames = {"as asked", "greedy tree", "narrow",
                                                                "chain", "plain"};
  return kNames[static_cast<size_t>(strategy)];
}

Status StrategyOptions::check() const {
  if (least_accepted_length >= 0 && target_milliseconds >= 0) return Status::okay();
  return Status(Code::kInvalidArgument,
                "the accepted length below which a strategy is tried, and the target for a "
                "token's milliseconds, must be 0 or above");
}

void StrategySwitch::start(Mode asked, const StrategyOptions& options) {
  *this = StrategySwitch();
  asked_ = asked;
  options_ = options;
}

void StrategySwitch::observe(int drafted, int emitted, double seconds) {
  ++sum_.steps;
  sum_.drafted += drafted;
  sum_.emitted += emitted;
  sum_.seconds += seconds;
  if (sum_.steps < kWindow) return;
  if (held_) {
    held_steps_ += sum_.steps;
    if (sum_.seconds_a_token() >= asked_seconds_) {
      give_up();
    } else if (held_steps_ >= kHeld) {
      as_asked(Reason::kComparedAgain);
    }
  } else if (tried_ != Strategy::kAsAsked) {
    if (sum_.seconds_a_token() < fastest_seconds_) {
      fastest_ = tried_;
      fastest_seconds_ = sum_.seconds_a_token();
    }
    ++trial_;
    try_next();
  } else {
    look();
  }
  sum_ = {};
}

void StrategySwitch::interrupted() { sum_ = {}; }

void StrategySwitch::look() {
  rest_ = std::max(0, rest_ - sum_.steps);
  // An empty tree, or nearly: that is plain decoding already.
  if (rest_ > 0 || 2 * sum_.drafted < sum_.steps) return;
  candidate_count_ = 0;
  trigger_ = Reason::kNone;
  asked_seconds_ = sum_.seconds_a_token();
  const double length = static_cast<double>(sum_.emitted) / sum_.steps;
  const bool budgeted = asked_ == Mode::kDynamic;
  if (options_.target_milliseconds > 0 && !budgeted &&
      asked_seconds_ * 1e3 > options_.target_milliseconds) {
    candidates_[candidate_count_++] = Strategy::kGreedyTree;
    trigger_ = Reason::kLatency;
  }
  if (length < options_.least_accepted_length) {
    if (asked_ != Mode::kChain) candidates_[candidate_count_++] = Strategy::kChain;
    candidates_[candidate_count_++] = Strategy::kPlain;
    trigger_ = Reason::kAcceptedLength;
  }
  if (candidate_count_ == 0) return;
  fastest_ = Strategy::kAsAsked;
  fastest_seconds_ = asked_seconds_ * (1 - kMargin);
  trial_ = 0;
  try_next();
}

void StrategySwitch::try_next() {
  if (trial_ < candidate_count_) {
    tried_ = candidates_[trial_];
    reason_ = trigger_;
    return;
  }
  if (fastest_ == Strategy::kAsAsked) return give_up();
  tried_ = fastest_;
  held_ = true;
  held_steps_ = 0;
  next_rest_ = kFirstRest;
}

void StrategySwitch::give_up() {
  rest_ = next_rest_;
  next_rest_ = std::min(2 * next_rest_, kLongestRest);
  as_asked(Reason::kNotFaster);
}

void StrategySwitch::as_asked(Reason why) {
  tried_ = Strategy::kAsAsked;
  reason_ = why;
  held_ = false;
}

}  // namespace sapwood
