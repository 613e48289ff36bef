#include "engine/adaptation.h"

#include <algorithm>

namespace sapwood {

Fallback::Plan Fallback::plan() const {
  if (cooling_ > 0) return Plan::kPlain;
  return failures_ > 0 ? Plan::kChain : Plan::kAsAsked;
}

void Fallback::observe(int drafted, int accepted, int emitted) {
  if (cooling_ > 0) {
    cooling_ = std::max(0, cooling_ - emitted);
    return;
  }
  if (drafted == 0) return;  // nothing was tried, so nothing failed
  if (accepted > 0) {
    failures_ = 0;
    cool_down_ = kFirstCoolDown;
    return;
  }
  if (++failures_ < kFailures) {
    ++soft_;
    return;
  }
  ++hard_;
  cooling_ = cool_down_;
  cool_down_ = std::min(2 * cool_down_, kLongestCoolDown);
  // The first step afterwards is a trial: one more failure is a relapse.
  failures_ = kFailures - 1;
}

std::optional<LengthRule> parse_length_rule(std::string_view name) {
  for (const LengthRule rule : {LengthRule::kWindow, LengthRule::kEntropy}) {
    if (name == length_rule_name(rule)) return rule;
  }
  return std::nullopt;
}

std::string_view length_rule_name(LengthRule rule) {
  return rule == LengthRule::kWindow ? "window" : "entropy";
}

void ChainLength::start(int length, int longest) {
  *this = ChainLength();
  longest_ = std::max(longest, 1);
  length_ = std::clamp(length, 1, longest_);
}

void ChainLength::observe(int drafted, int accepted) {
  if (drafted == 0) return;
  steps_[next_] = {drafted, accepted};
  next_ = (next_ + 1) % kWindow;
  if (++seen_ < kWindow) return;  // what was seen at another length is not held against this one
  int all = 0;
  int good = 0;
  for (const Step& step : steps_) {
    all += step.drafted;
    good += step.accepted;
  }
  const double share = static_cast<double>(good) / all;
  const int wanted = share > kLonger ? length_ + 1 : share < kShorter ? length_ - 1 : length_;
  if (const int length = std::clamp(wanted, 1, longest_); length != length_) {
    length_ = length;
    seen_ = 0;
  }
}

BetaTuner::BetaTuner(double beta, double lowest, double highest)
    : beta_(std::clamp(beta, lowest, highest)), lowest_(lowest), highest_(highest) {}

void BetaTuner::observe(int emitted) {
  emitted_[next_] = emitted;
  next_ = (next_ + 1) % kWindow;
  seen_ = std::min(seen_ + 1, kWindow);
  int sum = 0;
  for (int i = 0; i < seen_; ++i) sum += emitted_[i];
  if (sum == 0) return;
  const double mean = static_cast<double>(sum) / seen_;
  beta_ = std::clamp(beta_ * (1 + kRate * (kTarget / mean - 1)), lowest_, highest_);
}

}  // namespace sapwood
