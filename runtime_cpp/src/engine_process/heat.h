// How an answer is decoded on a warm device (MATH.md, section 7).
#pragma once

#include <optional>
#include <string_view>

#include "sapwood/sapwood.h"

namespace sapwood {

enum class Heat { kCool, kWarm, kHot, kCritical };
std::string_view heat_name(Heat heat);

// Follows the temperature: up at once, down one state a reading, and only below 45 C.
class HeatWatch {
 public:
  void report(std::optional<double> celsius);

  Heat heat() const { return heat_; }
  std::optional<double> celsius() const { return celsius_; }

  // Warm: beta 0.1 higher. Hot: 0.2 higher, and chains and fixed trees half as long. Critical:
  // plain decoding.
  void apply(sapwood_generate_options* options) const;

 private:
  Heat heat_ = Heat::kCool;
  std::optional<double> celsius_;
};

}  // namespace sapwood
