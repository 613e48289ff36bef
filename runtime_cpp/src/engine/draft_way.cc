#include "engine/draft_way.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

std::optional<DoubleBuffer> parse_double_buffer(std::string_view name) {
  if (name == "off") return DoubleBuffer::kOff;
  if (name == "measured") return DoubleBuffer::kMeasured;
  if (name == "on") return DoubleBuffer::kOn;
  return std::nullopt;
}

std::string_view draft_way_name(DraftWay way) {
  switch (way) {
    case DraftWay::kInTurns:
      return "in turns";
    case DraftWay::kBeside:
      return "beside";
    case DraftWay::kAhead:
      return "ahead";
  }
  return "unknown";
}

void DraftWayChoice::Sums::add(double step_tokens, double step_seconds) {
  steps += 1;
  tokens += step_tokens;
  seconds += step_seconds;
  tokens_squared += step_tokens * step_tokens;
  seconds_squared += step_seconds * step_seconds;
  product += step_tokens * step_seconds;
}

// Half of what is known stays: one trial says little, and conditions change.
void DraftWayChoice::Sums::fade() {
  for (double* sum : {&steps, &tokens, &seconds, &tokens_squared, &seconds_squared, &product}) {
    *sum /= 2;
  }
}

double DraftWayChoice::Sums::variance() const {
  const double ratio = seconds_a_token();
  const double squares = seconds_squared - 2 * ratio * product + ratio * ratio * tokens_squared;
  return std::max(squares, 0.0) / (tokens * tokens);
}

DraftWay DraftWayChoice::way() const {
  return in_trial() ? static_cast<DraftWay>(step_ / kBlock % kDraftWays) : kept_;
}

void DraftWayChoice::observe(int emitted, double seconds) {
  const bool trial = in_trial();
  if (trial && step_ % kBlock != 0) sums_[static_cast<size_t>(way())].add(emitted, seconds);
  ++step_;
  if (step_ == kTrial) {
    decide();
  } else if (step_ == kTrial + lasts_) {
    for (Sums& each : sums_) each.fade();
    step_ = 0;
  } else if (!trial) {
    watch(seconds);
  }
}

void DraftWayChoice::decide() {
  const Sums& in_turns = sums_[static_cast<size_t>(DraftWay::kInTurns)];
  DraftWay best = DraftWay::kInTurns;
  double least = in_turns.seconds_a_token();
  for (const DraftWay way : {DraftWay::kBeside, DraftWay::kAhead}) {
    const Sums& sums = sums_[static_cast<size_t>(way)];
    const double gained = in_turns.seconds_a_token() - sums.seconds_a_token();
    if (gained <= std::sqrt(in_turns.variance() + sums.variance())) continue;
    if (sums.seconds_a_token() >= least) continue;
    least = sums.seconds_a_token();
    best = way;
  }
  lasts_ = best == kept_ ? std::min(2 * lasts_, kLongestKept) : kKept;
  kept_ = best;
  watched_ = 0;
  watched_seconds_ = 0;
}

void DraftWayChoice::watch(double seconds) {
  watched_seconds_ += seconds;
  if (++watched_ < kWatched) return;
  const double usual = sums_[static_cast<size_t>(kept_)].seconds_a_step();
  if (watched_seconds_ > kSlower * usual * kWatched) {
    *this = DraftWayChoice();
    return;
  }
  watched_ = 0;
  watched_seconds_ = 0;
}

}  // namespace sapwood
