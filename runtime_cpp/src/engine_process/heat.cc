#include "engine_process/heat.h"

#include <algorithm>

namespace sapwood {
namespace {

constexpr double kWarmCelsius = 45;
constexpr double kHotCelsius = 50;
constexpr double kCriticalCelsius = 55;

Heat heat_of(double celsius) {
  if (celsius >= kCriticalCelsius) return Heat::kCritical;
  if (celsius >= kHotCelsius) return Heat::kHot;
  return celsius >= kWarmCelsius ? Heat::kWarm : Heat::kCool;
}

}  // namespace

std::string_view heat_name(Heat heat) {
  switch (heat) {
    case Heat::kCool:
      return "cool";
    case Heat::kWarm:
      return "warm";
    case Heat::kHot:
      return "hot";
    case Heat::kCritical:
      return "critical";
  }
  return "unknown";
}

void HeatWatch::report(std::optional<double> celsius) {
  celsius_ = celsius;
  if (!celsius) {
    heat_ = Heat::kCool;
    return;
  }
  const Heat now = heat_of(*celsius);
  if (now > heat_) {
    heat_ = now;
  } else if (now == Heat::kCool && heat_ != Heat::kCool) {
    heat_ = static_cast<Heat>(static_cast<int>(heat_) - 1);
  }
}

void HeatWatch::apply(sapwood_generate_options* options) const {
  if (heat_ == Heat::kCritical) options->mode = SAPWOOD_PLAIN;
  if (heat_ == Heat::kWarm) options->beta = std::min(1.0f, options->beta + 0.1f);
  if (heat_ == Heat::kHot) {
    options->beta = std::min(1.0f, options->beta + 0.2f);
    options->chain_length = (options->chain_length + 1) / 2;
    options->fixed_nodes = (options->fixed_nodes + 1) / 2;
  }
}

}  // namespace sapwood
