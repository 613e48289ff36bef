// Less speculation when the device is hot or draws too much (MATH.md, section 7).
//
// Heat raises the state at once, as far as it says. It falls by one state at a time, after the
// device has been below the first threshold for a while; if it had to rise again soon after, that
// while doubles, so that a device near a threshold does not go back and forth.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace sapwood {

enum class Heat {
  kCool,
  kWarm,      // above 45 C or the power budget: beta + 0.1
  kHot,       // above 50 C: beta + 0.2, trees half as wide
  kCritical,  // above 55 C: no speculation
};
std::string_view heat_name(Heat heat);  // "cool", "warm", "hot", "critical"

struct GovernorOptions {
  float warm_celsius = 45;
  float hot_celsius = 50;
  float critical_celsius = 55;
  float watts = 4;          // the budget; being above it is like being warm
  double calm_seconds = 2;  // below warm, before a state is left
  double most_calm_seconds = 64;
};

class Governor {
 public:
  explicit Governor(const GovernorOptions& options = {}) : options_(options) {}

  // What a sensor says at a time that does not go back; a sensor that there is none of is not
  // heard. Whether the state is another now.
  bool observe(double seconds, std::optional<float> celsius, std::optional<float> watts);
  bool observe_now(std::optional<float> celsius, std::optional<float> watts);  // by Clock

  Heat heat() const { return heat_; }
  // What it means for a step.
  float beta_added() const {
    return heat_ == Heat::kCool ? 0.f : heat_ == Heat::kWarm ? 0.1f : 0.2f;
  }
  int width(int asked) const { return heat_ >= Heat::kHot ? (asked + 1) / 2 : asked; }
  bool may_draft() const { return heat_ != Heat::kCritical; }

 private:
  Heat demanded(std::optional<float> celsius, std::optional<float> watts) const;

  GovernorOptions options_;
  Heat heat_ = Heat::kCool;
  double calm_since_ = -1;  // below 0: it is not calm
  double needed_ = 0;       // seconds of calm before the next fall; 0: the first
  double fell_at_ = -1;     // below 0: never
};

}  // namespace sapwood
