// The pruning controller: how sure the drafter is decides how many candidates it keeps (MATH.md,
// section 3).
//
//   uncertainty a in [0, 1]: from the entropy of q, or from a small network on the drafter's hidden
//                            state that predicts the probability of rejection
//                            (tree/uncertainty_head.h);
//   prune ratio = clip(beta_base (1 - a), rho_min, rho_max): sure -> prune much;
//   soft truncation: the shortest prefix of the candidates, by falling q, of mass Z >= 1 - ratio;
//   importance weight of what is kept: q~ / q = 1 / Z, so log w = -log Z.
#pragma once

#include "base/status.h"
#include "tree/candidates.h"

namespace sapwood {

struct ControllerOptions {
  float beta_base = 0.3f;
  float rho_min = 0.02f;
  float rho_max = 0.6f;
  int max_tree_width = 16;    // candidates kept at most, 1 to Candidates::kMost
  float entropy_low = 0.8f;   // nats: at and below, the drafter is certain
  float entropy_high = 2.5f;  // nats: at and above, it has no idea

  Status check() const;  // kInvalidArgument, naming the option and its range
};

// a = clip((H - entropy_low) / (entropy_high - entropy_low), 0, 1), H in nats.
float entropy_uncertainty(float entropy, const ControllerOptions& options);

// What the candidates' head says, or else the entropy rule.
float uncertainty_of(const Candidates& candidates, const ControllerOptions& options);

float prune_ratio(float uncertainty, const ControllerOptions& options);

// How many tokens to draft at most where the draft's law has this entropy in nats: 8 below 0.5, 4
// below 1.0, else 1 (MATH.md, section 7).
int draft_length(float entropy);

struct SoftTruncation {
  int kept;          // the first so many candidates
  float log_mass;    // log Z
  float log_weight;  // -log Z, 0 if everything is kept
};

// At least one candidate, at most max_tree_width.
SoftTruncation soft_truncate(const Candidates& candidates, float ratio, int max_tree_width);

}  // namespace sapwood
