#include "engine/governor.h"

#include <algorithm>
#include <array>

#include "base/clock.h"

namespace sapwood {
namespace {

// Android's levels: PowerManager.THERMAL_STATUS_NONE, _LIGHT, _MODERATE, _SEVERE, _CRITICAL,
// _EMERGENCY, _SHUTDOWN.
constexpr std::array<Heat, 7> kHeatOfStatus = {Heat::kCool,    Heat::kWarm,     Heat::kWarm,
                                               Heat::kHot,     Heat::kCritical, Heat::kCritical,
                                               Heat::kCritical};

// ComponentCallbacks2's levels do not rise with the need: those up to 19 are for an app that is
// seen, those above 40 for one that may be ended soon.
MemoryPressure of_trim_level(int level) {
  constexpr int kRunningLow = 10, kRunningCritical = 15, kUiHidden = 20, kBackground = 40,
                kComplete = 80;
  if (level >= kComplete) return MemoryPressure::kCritical;
  if (level >= kBackground) return MemoryPressure::kLow;
  if (level >= kUiHidden) return MemoryPressure::kNone;  // says nothing of memory
  if (level >= kRunningCritical) return MemoryPressure::kCritical;
  return level >= kRunningLow ? MemoryPressure::kLow : MemoryPressure::kNone;
}

struct Demand {
  Heat heat = Heat::kCool;
  Reason reason = Reason::kNone;
  void at_least(Heat wanted, Reason why) {
    if (wanted > heat) *this = {wanted, why};
  }
};

Demand heat_demanded(const DeviceReadings& readings, const GovernorOptions& options) {
  Demand demand;
  if (readings.celsius) {
    const float celsius = *readings.celsius;
    const Heat heat = celsius > options.critical_celsius ? Heat::kCritical
                      : celsius > options.hot_celsius    ? Heat::kHot
                      : celsius > options.warm_celsius   ? Heat::kWarm
                                                         : Heat::kCool;
    demand.at_least(heat, Reason::kTemperature);
  }
  if (readings.thermal_status) {
    const int highest = static_cast<int>(kHeatOfStatus.size()) - 1;
    const int status = std::clamp(*readings.thermal_status, 0, highest);
    demand.at_least(kHeatOfStatus[static_cast<size_t>(status)], Reason::kThermalStatus);
  }
  if (readings.watts && *readings.watts > readings.watts_budget) {
    demand.at_least(Heat::kWarm, Reason::kPower);
  }
  return demand;
}

MemoryPressure pressure_demanded(const DeviceReadings& readings, const GovernorOptions& options) {
  const float used = readings.memory_used.value_or(0.f);
  const MemoryPressure by_share = used >= options.critical_memory ? MemoryPressure::kCritical
                                  : used >= options.low_memory    ? MemoryPressure::kLow
                                                                  : MemoryPressure::kNone;
  return std::max(by_share, of_trim_level(readings.trim_level.value_or(0)));
}

}  // namespace

std::string_view heat_name(Heat heat) {
  constexpr std::array<std::string_view, 4> kNames = {"cool", "warm", "hot", "critical"};
  return kNames[static_cast<size_t>(heat)];
}

std::string_view memory_pressure_name(MemoryPressure pressure) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "low", "critical"};
  return kNames[static_cast<size_t>(pressure)];
}

bool Governor::observe(double seconds, const DeviceReadings& readings) {
  bool changed = false;
  if (readings.celsius || readings.watts || readings.thermal_status) {
    const Demand demand = heat_demanded(readings, options_);
    const Heat before = heat();
    if (heat_.observe(seconds, static_cast<int>(demand.heat))) {
      heat_reason_ = heat() > before ? demand.reason : Reason::kRecovered;
      changed = true;
    }
  }
  if (readings.memory_used || readings.trim_level) {
    const MemoryPressure before = memory_pressure();
    if (memory_.observe(seconds, static_cast<int>(pressure_demanded(readings, options_)))) {
      memory_reason_ = memory_pressure() > before ? Reason::kMemoryPressure : Reason::kRecovered;
      changed = true;
    }
  }
  return changed;
}

bool Governor::observe_now(const DeviceReadings& readings) {
  return observe(seconds_since({}), readings);
}

}  // namespace sapwood
