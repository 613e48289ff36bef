// What a step costs beside the model: growing a tree, laying it out, walking it, learning from it.
// The numbers of `sapwood bench tree`.
#pragma once

#include <string_view>

#include "base/status.h"

namespace sapwood {

// Microseconds, medians over the rounds.
struct TreeCost {
  int nodes = 0;          // of the trees that were grown
  double grow = 0;        // propose()
  double layout = 0;      // the rows of a pass
  double verify = 0;      // target_draw, greedy
  double follow = 0;      // the drafter takes the emitted tokens
  double observe = 0;     // the drafter takes all rows
  double select_row = 0;  // the eight likeliest of one row
};

// Over rows of `vocabulary` random logits and a text that repeats itself, with a drafter by name
// that has seen 200 steps. Trees have at most `nodes` nodes.
Result<TreeCost> tree_cost(std::string_view drafter, int vocabulary, int nodes, int rounds);

}  // namespace sapwood
