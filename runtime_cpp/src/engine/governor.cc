#include "engine/governor.h"

#include <algorithm>

#include "base/clock.h"

namespace sapwood {

std::string_view heat_name(Heat heat) {
  constexpr std::array<std::string_view, 4> kNames = {"cool", "warm", "hot", "critical"};
  return kNames[static_cast<size_t>(heat)];
}

Heat Governor::demanded(std::optional<float> celsius, std::optional<float> watts) const {
  const float degrees = celsius.value_or(0.f);
  if (degrees > options_.critical_celsius) return Heat::kCritical;
  if (degrees > options_.hot_celsius) return Heat::kHot;
  const bool above_budget = watts && *watts > options_.watts;
  return degrees > options_.warm_celsius || above_budget ? Heat::kWarm : Heat::kCool;
}

bool Governor::observe(double seconds, std::optional<float> celsius, std::optional<float> watts) {
  if (!celsius && !watts) return false;
  const Heat demand = demanded(celsius, watts);
  if (demand > heat_) {
    const bool relapse =
        fell_at_ >= 0 && seconds - fell_at_ < 2 * std::max(needed_, options_.calm_seconds);
    needed_ =
        relapse ? std::min(2 * std::max(needed_, options_.calm_seconds), options_.most_calm_seconds)
                : options_.calm_seconds;
    heat_ = demand;
    calm_since_ = -1;
    return true;
  }
  if (demand != Heat::kCool || heat_ == Heat::kCool) {
    calm_since_ = -1;
    return false;
  }
  if (calm_since_ < 0) calm_since_ = seconds;
  if (seconds - calm_since_ < needed_) return false;
  heat_ = static_cast<Heat>(static_cast<int>(heat_) - 1);
  calm_since_ = seconds;  // the next fall needs calm of its own
  fell_at_ = seconds;
  return true;
}

bool Governor::observe_now(std::optional<float> celsius, std::optional<float> watts) {
  return observe(seconds_since({}), celsius, watts);
}

}  // namespace sapwood
