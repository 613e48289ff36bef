// What a request means for a tree that is drawn.
#pragma once

#include "draft/drafter.h"
#include "tree/sampled_tree.h"

namespace sapwood {

// For SampledTreeGrower::grow, together with request.pruning.
inline SampledGrowth sampled_growth(const DraftRequest& request) {
  SampledGrowth growth;
  growth.max_nodes = request.max_nodes;
  growth.max_depth = request.max_depth;
  growth.max_children = request.max_width;
  switch (request.growth) {
    case Growth::kChain:
      growth.max_children = 1;
      growth.length_by_entropy = request.length_by_entropy;
      break;
    case Growth::kShape:
      growth.shape = request.shape;
      break;
    case Growth::kBudgeted:
      growth.cost = request.cost;
      growth.overhead_ms = request.overhead_ms;
      break;
  }
  return growth;
}

}  // namespace sapwood
