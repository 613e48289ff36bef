// The exactness report: every verifier with every pruning, drafter and temperature, by enumeration.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "verify/enumerate.h"

namespace sapwood {

inline constexpr double kExactTolerance = 1e-12;

struct Exactness {
  std::string name;          // "traversal/tree/soft/close/t=0.7"
  bool lossless;             // claimed; the ablations are known not to be
  double deviation;          // total variation from plain decoding, the largest over the models
  double expected_accepted;  // nodes a step, mean over the models
  double optimum;  // the largest of any valid verifier for these drafts (verify/optimum.h)
};

struct ExactnessOptions {
  int vocabulary = 4;  // tokens, 2 to 6
  int depth = 2;       // of the trees, 1 to 3; texts are one token longer
  int nodes = 4;       // of the trees, 1 to 8
  int models = 2;      // random target and drafter pairs behind each figure, 1 to 100

  Status check() const;
};

Result<std::vector<Exactness>> exactness_report(const ExactnessOptions& options);

// Expected accepted nodes of full trees of two children a node and two levels over three tokens,
// means over random targets and good drafters at temperature 1.
struct TreeComparison {
  int models = 0;
  double naive = 0;      // multi-round with replacement (SpecInfer): duplicates waste rows
  double rejection = 0;  // without replacement
  double traversal = 0;
  double sampled_optimum = 0;  // of any verifier of the same sampled trees
  double ranked = 0;           // target_draw over the two likeliest children, its own optimum
};
Result<TreeComparison> compare_on_trees(int models);

// Expected accepted nodes of sampled chains of three over four tokens: per model, block's minus
// rejection's.
struct ChainComparison {
  int models = 0;
  double rejection = 0;
  double block = 0;
  double optimum = 0;
  double least_gain = 0;  // the smallest of block - rejection over the models
};
Result<ChainComparison> compare_on_chains(int models);

}  // namespace sapwood
