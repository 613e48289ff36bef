// Exact enumeration of what a step emits, for small vocabularies and depths.
//
// The drafter's draws and the verifier's decisions branch (verify/branching.h); every outcome's
// text is continued by plain decoding to a fixed length. The law of that text, summed over all
// branches, is compared with plain decoding's. By induction over steps, a step that is exact after
// every text makes a generation exact.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "tree/pruning.h"
#include "verify/tiny_model.h"
#include "verify/verifier.h"

namespace sapwood {

// A form that is known to bias the text, to measure by how much.
enum class Ablation {
  kNone,
  kScaleAndMask,       // the published kernel: the target is conditioned on what was kept
  kDropByProbability,  // drawn children of low q~ are taken out of the tree before verification
};

struct EnumeratedStep {
  Verifier verifier = Verifier::kTargetDraw;
  TreeOrigin origin = TreeOrigin::kRanked;
  const Pruning* pruning = nullptr;
  Ablation ablation = Ablation::kNone;
  SamplingOptions sampling;  // of both sides; the seed is not used
  int max_nodes = 4;
  int max_depth = 2;
  int max_children = 32;  // 1: a chain
};

struct StepLaw {
  std::map<Path, double> texts;      // of the first `length` tokens
  std::map<PathSet, double> drafts;  // law of the tree
  double expected_accepted = 0;      // nodes a step
  int64_t branches = 0;
};

// The law of the first `length` tokens after the empty text.
Result<StepLaw> enumerate_step(const EnumeratedStep& step, TinyModel& model, int length);

// The same for plain decoding.
Result<std::map<Path, double>> enumerate_plain(const SamplingOptions& sampling, TinyModel& model,
                                               int length);

// Half the sum of the differences: 0 for equal laws, 1 for laws that share nothing.
double total_variation(const std::map<Path, double>& a, const std::map<Path, double>& b);

// The bound of verify/optimum.h for the drafts of this step.
Result<double> optimum_of(const StepLaw& law, const SamplingOptions& sampling, TinyModel& model);

}  // namespace sapwood
