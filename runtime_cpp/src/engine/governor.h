// Less speculation when the device is hot, draws too much or runs out of memory (MATH.md, section
// 7). Heat and memory pressure have a state each, which rises at once and falls by one at a time
// (engine/hysteresis.h).
#pragma once

#include <optional>
#include <string_view>

#include "engine/hysteresis.h"
#include "engine/reason.h"

namespace sapwood {

enum class Heat {
  kCool,
  kWarm,      // above 45 C or the power budget, thermal status light or moderate: beta + 0.1
  kHot,       // above 50 C, severe: beta + 0.2, trees half as wide
  kCritical,  // above 55 C, critical or beyond: no speculation
};
std::string_view heat_name(Heat heat);  // "cool", "warm", "hot", "critical"

enum class MemoryPressure {
  kNone,
  kLow,       // 90 % taken, or TRIM_MEMORY_RUNNING_LOW: trees half as wide
  kCritical,  // 97 %, or TRIM_MEMORY_RUNNING_CRITICAL: a chain
};
std::string_view memory_pressure_name(MemoryPressure pressure);  // "none", "low", "critical"

// What sensors and the platform say, now; one that there is none of is not heard.
struct DeviceReadings {
  std::optional<float> celsius = {};
  std::optional<float> watts = {};         // that the device draws
  float watts_budget = 4;                  // being above it is like being warm
  std::optional<int> thermal_status = {};  // Android's PowerManager.THERMAL_STATUS_*: 0 (none) to 6
  std::optional<float> memory_used = {};   // share of the device's memory that is taken, 0 to 1
  std::optional<int> trim_level = {};  // Android's ComponentCallbacks2.TRIM_MEMORY_*; 0: has eased
};

struct GovernorOptions {
  float warm_celsius = 45;
  float hot_celsius = 50;
  float critical_celsius = 55;
  float low_memory = 0.90f;  // of DeviceReadings::memory_used
  float critical_memory = 0.97f;
  double calm_seconds = 2;  // below the first threshold, before a state is left
  double most_calm_seconds = 64;
};

class Governor {
 public:
  explicit Governor(const GovernorOptions& options = {})
      : options_(options),
        heat_(options.calm_seconds, options.most_calm_seconds),
        memory_(options.calm_seconds, options.most_calm_seconds) {}

  // Readings at a time that does not go back. Whether a state is another now.
  bool observe(double seconds, const DeviceReadings& readings);
  bool observe_now(const DeviceReadings& readings);  // by Clock

  Heat heat() const { return static_cast<Heat>(heat_.state()); }
  Reason heat_reason() const { return heat_reason_; }  // of its latest change
  MemoryPressure memory_pressure() const { return static_cast<MemoryPressure>(memory_.state()); }
  Reason memory_reason() const { return memory_reason_; }

  // What it means for a step.
  float beta_added() const {
    return heat() == Heat::kCool ? 0.f : heat() == Heat::kWarm ? 0.1f : 0.2f;
  }
  bool is_narrow() const {
    return heat() >= Heat::kHot || memory_pressure() >= MemoryPressure::kLow;
  }
  Reason narrow_reason() const { return heat() >= Heat::kHot ? heat_reason_ : memory_reason_; }
  static int narrowed(int asked) { return (asked + 1) / 2; }
  int width(int asked) const { return is_narrow() ? narrowed(asked) : asked; }
  bool may_branch() const { return memory_pressure() != MemoryPressure::kCritical; }
  bool may_draft() const { return heat() != Heat::kCritical; }

 private:
  GovernorOptions options_;
  Hysteresis heat_;
  Hysteresis memory_;
  Reason heat_reason_ = Reason::kNone;
  Reason memory_reason_ = Reason::kNone;
};

}  // namespace sapwood
