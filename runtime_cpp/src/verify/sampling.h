// The one sampling transform: logits -> the law the next token is drawn from.
//
// Drafts, verifiers and plain decoding all come through here, so that no side can forget a filter.
// Order, as in Hugging Face's generate: repetition penalty over the tokens so far (each once:
// positive logits are divided, negative ones multiplied), temperature, top-k, top-p, min-p.
// Temperature 0 is greedy: all mass on the largest logit after the penalty, ties to the lowest id.
//
//   Sampler sampler(vocabulary_size);
//   SAPWOOD_TRY(sampler.start(options, prompt));
//   Result<int32_t> token = sampler.choose(logits, index);   // then sampler.push(token.value())
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace sapwood {

struct SamplingOptions {
  float temperature = 0.f;         // 0: greedy
  int top_k = 0;                   // keep the k likeliest; 0: all. Ties at the border: lowest ids
  float top_p = 1.f;               // keep the shortest prefix, by probability, of mass >= top_p
  float min_p = 0.f;               // keep tokens with p >= min_p * largest p
  float repetition_penalty = 1.f;  // above 1 discourages tokens that were seen
  uint64_t seed = 0;

  bool greedy() const { return temperature == 0.f; }
  Status check() const;  // kInvalidArgument, naming the option and its range
};

// A law over tokens. Sparse after a filter, dense without one.
struct TokenLaw {
  std::span<const int32_t> tokens;  // ascending ids; empty: dense, entry i is token i
  std::span<const float> log_p;     // natural logarithms, summing to 1 when exponentiated

  int size() const { return static_cast<int>(log_p.size()); }
  int32_t token(int entry) const { return tokens.empty() ? entry : tokens[entry]; }
  float log_probability(int32_t token) const;  // -infinity outside the law
};

// The index of the largest value, the lowest one on a tie; -1 when no value is above -infinity or
// one of them is not a number or +infinity.
int argmax(std::span<const float> values);

class Sampler {
 public:
  explicit Sampler(int vocabulary_size);  // allocates everything it will ever need

  // Forgets the past and takes `history` as the tokens so far.
  Status start(const SamplingOptions& options, std::span<const int32_t> history);
  const SamplingOptions& options() const { return options_; }
  int vocabulary_size() const { return vocabulary_size_; }

  // One more token in the history the penalty sees.
  void push(int32_t token);

  // How far the history has come, and back to there: what was pushed since is forgotten.
  int mark() const { return static_cast<int>(seen_tokens_.size()); }
  void rewind(int mark);

  // The law after `history` for logits [vocabulary_size], valid until the next call.
  Result<TokenLaw> law(std::span<const float> logits);

  // The token at output position `index`: the winner of that position's race (verify/race.h) under
  // law(). Greedy skips the law. Logits that are not finite numbers (-infinity is allowed) are an
  // error.
  Result<int32_t> choose(std::span<const float> logits, uint64_t index);

 private:
  std::span<const float> penalised(std::span<const float> logits);
  Result<int> largest_of(std::span<const float> logits) const;
  void scale(std::span<const float> logits, float largest);
  TokenLaw dense_law();
  TokenLaw filtered_law();
  void collect(float lowest);
  void cut(size_t count, double goal);
  double kept_mass() const;

  const int vocabulary_size_;
  SamplingOptions options_;
  std::vector<uint8_t> seen_;         // [vocabulary]
  std::vector<int32_t> seen_tokens_;  // distinct, in order of first sight
  std::vector<float> work_;           // [vocabulary], logits after the penalty
  std::vector<float> scores_;         // [vocabulary], scaled logits, then log probabilities
  std::vector<float> block_max_;      // of scores_
  std::vector<int32_t> kept_;         // ids that passed the filters
  std::vector<int32_t> border_;       // of cut(): ids with a score near where it lies
};

}  // namespace sapwood
