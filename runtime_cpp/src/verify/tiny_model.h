// A target and a drafter over a handful of tokens, for exact enumeration.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "verify/optimum.h"
#include "verify/sampling.h"

namespace sapwood {

// How the drafter's logits relate to the target's.
enum class TinyDrafter {
  kClose,      // the target's with noise: a good draft model
  kUnrelated,  // their own: a bad one
  kCertain,    // one token has everything: an n-gram table with one successor
};

// Random logits for every text, the same for the same seed, made on demand.
class TinyModel {
 public:
  TinyModel(int vocabulary, TinyDrafter drafter, uint64_t seed)
      : vocabulary_(vocabulary), drafter_(drafter), seed_(seed) {}

  int vocabulary() const { return vocabulary_; }
  const std::vector<float>& target(const Path& text);
  const std::vector<float>& draft(const Path& text);

 private:
  std::vector<float> normals(const Path& text, uint64_t stream) const;

  const int vocabulary_;
  const TinyDrafter drafter_;
  const uint64_t seed_;
  std::map<Path, std::vector<float>> target_;
  std::map<Path, std::vector<float>> draft_;
};

// The probabilities a draw by this law gives each token, in double [vocabulary].
std::vector<double> probabilities(const TokenLaw& law, int vocabulary);

}  // namespace sapwood
