#include "engine_process/heat.h"

#include <algorithm>

namespace sapwood {

void HeatWatch::report(std::optional<double> celsius) {
  celsius_ = celsius;
  if (celsius) {
    governor_.observe_now({.celsius = static_cast<float>(*celsius)});
  } else {
    governor_ = Governor();
  }
}

void HeatWatch::apply(sapwood_generate_options* options) const {
  if (!governor_.may_draft()) options->mode = SAPWOOD_PLAIN;
  options->beta = std::min(1.0f, options->beta + governor_.beta_added());
  options->chain_length = governor_.width(options->chain_length);
  options->fixed_nodes = governor_.width(options->fixed_nodes);
}

}  // namespace sapwood
