// How an answer is decoded on a warm device: the governor's word (engine/governor.h), for options
// of the C API.
#pragma once

#include <optional>

#include "engine/governor.h"
#include "sapwood/sapwood.h"

namespace sapwood {

class HeatWatch {
 public:
  // A reading, now; none: there is nothing that measures, and the device counts as cool.
  void report(std::optional<double> celsius);

  Heat heat() const { return governor_.heat(); }
  std::optional<double> celsius() const { return celsius_; }

  // Warm: beta 0.1 higher. Hot: 0.2 higher, and chains and fixed trees half as long. Critical:
  // plain decoding.
  void apply(sapwood_generate_options* options) const;

 private:
  Governor governor_;
  std::optional<double> celsius_;
};

}  // namespace sapwood
