#include "verify/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"
#include "verify/race.h"

namespace sapwood {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kBlock = 1024;  // entries summed or compared together
constexpr int kSkip = 128;    // entries passed over together when none of them is likely enough

double mass(const float* values, int n) { return vector_loops().mass(values, n); }

Status out_of_range(const char* option, float value, const char* range) {
  return Status(Code::kInvalidArgument,
                std::string(option) + " is " + std::to_string(value) + "; it must be " + range);
}

}  // namespace

Status SamplingOptions::check() const {
  if (!(temperature >= 0.f && temperature <= 1000.f)) {
    return out_of_range("temperature", temperature, "between 0 (greedy) and 1000");
  }
  if (top_k < 0) {
    return Status(Code::kInvalidArgument,
                  "top-k is " + std::to_string(top_k) + "; it must be 0 (off) or above");
  }
  if (!(top_p > 0.f && top_p <= 1.f)) {
    return out_of_range("top-p", top_p, "above 0 and at most 1 (off)");
  }
  if (!(min_p >= 0.f && min_p <= 1.f)) return out_of_range("min-p", min_p, "between 0 (off) and 1");
  if (!(repetition_penalty > 0.f && repetition_penalty <= 1000.f)) {
    return out_of_range("repetition penalty", repetition_penalty, "above 0 and at most 1000");
  }
  return Status::okay();
}

float TokenLaw::log_probability(int32_t token) const {
  if (tokens.empty()) {
    return token >= 0 && token < size() ? log_p[token] : -kInfinity;
  }
  const auto found = std::lower_bound(tokens.begin(), tokens.end(), token);
  return found != tokens.end() && *found == token ? log_p[found - tokens.begin()] : -kInfinity;
}

int argmax(std::span<const float> values) {
  const int n = static_cast<int>(values.size());
  float best = -kInfinity;
  int best_block = -1;
  bool bad = false;
  const VectorLoops& loops = vector_loops();
  for (int begin = 0; begin < n; begin += kBlock) {
    const float largest = loops.largest(values.data() + begin, std::min(kBlock, n - begin), &bad);
    if (largest > best) {
      best = largest;
      best_block = begin;
    }
  }
  if (bad || best_block < 0) return -1;
  int i = best_block;
  while (values[i] != best) ++i;
  return i;
}

Sampler::Sampler(int vocabulary_size)
    : vocabulary_size_(vocabulary_size),
      seen_(vocabulary_size),
      work_(vocabulary_size),
      scores_(vocabulary_size),
      block_max_((vocabulary_size + kSkip - 1) / kSkip) {
  seen_tokens_.reserve(vocabulary_size);
  kept_.reserve(vocabulary_size);
  border_.reserve(vocabulary_size);
}

Status Sampler::start(const SamplingOptions& options, std::span<const int32_t> history) {
  SAPWOOD_TRY(options.check());
  options_ = options;
  for (const int32_t token : seen_tokens_) seen_[token] = 0;
  seen_tokens_.clear();
  for (const int32_t token : history) push(token);
  return Status::okay();
}

void Sampler::push(int32_t token) {
  if (token < 0 || token >= vocabulary_size_ || seen_[token] != 0) return;
  seen_[token] = 1;
  seen_tokens_.push_back(token);
}

void Sampler::rewind(int mark) {
  for (size_t i = static_cast<size_t>(mark); i < seen_tokens_.size(); ++i) {
    seen_[seen_tokens_[i]] = 0;
  }
  seen_tokens_.resize(static_cast<size_t>(mark));
}

std::span<const float> Sampler::penalised(std::span<const float> logits) {
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.f || seen_tokens_.empty()) return logits;
  std::copy(logits.begin(), logits.end(), work_.begin());
  for (const int32_t token : seen_tokens_) {
    float& logit = work_[token];
    logit = logit > 0.f ? logit / penalty : logit * penalty;
  }
  return work_;
}

Result<int> Sampler::largest_of(std::span<const float> logits) const {
  if (static_cast<int>(logits.size()) != vocabulary_size_) {
    return Status(Code::kInvalidArgument, "there are " + std::to_string(logits.size()) +
                                              " logits for a vocabulary of " +
                                              std::to_string(vocabulary_size_));
  }
  const int largest = argmax(logits);
  if (largest < 0) {
    return Status(Code::kInternal,
                  "the model returned logits that are not finite numbers; the bundle's weights may "
                  "be damaged");
  }
  return largest;
}

Result<TokenLaw> Sampler::law(std::span<const float> logits) {
  const std::span<const float> adjusted =
      static_cast<int>(logits.size()) == vocabulary_size_ ? penalised(logits) : logits;
  const Result<int> largest = largest_of(adjusted);
  if (!largest.ok()) return largest.status();
  if (options_.greedy()) {
    kept_.assign(1, largest.value());
    scores_[0] = 0.f;
    return TokenLaw{kept_, std::span<const float>(scores_).first(1)};
  }
  scale(adjusted, adjusted[largest.value()]);
  const bool filtered = (options_.top_k > 0 && options_.top_k < vocabulary_size_) ||
                        options_.top_p < 1.f || options_.min_p > 0.f;
  return filtered ? filtered_law() : dense_law();
}

// scores_ = (logits - largest) / temperature, at most 0, and the largest of each block.
void Sampler::scale(std::span<const float> logits, float largest) {
  const VectorLoops& loops = vector_loops();
  loops.scale(logits.data(), vocabulary_size_, largest, options_.temperature, scores_.data());
  bool bad = false;  // not possible any more: argmax looked
  for (size_t b = 0; b < block_max_.size(); ++b) {
    const int begin = static_cast<int>(b) * kSkip;
    block_max_[b] =
        loops.largest(scores_.data() + begin, std::min(kSkip, vocabulary_size_ - begin), &bad);
  }
}

TokenLaw Sampler::dense_law() {
  const float log_total = static_cast<float>(std::log(mass(scores_.data(), vocabulary_size_)));
  for (float& score : scores_) score -= log_total;
  return {{}, scores_};
}

// kept_ = the tokens with a score of at least `lowest`, by id.
void Sampler::collect(float lowest) {
  kept_.clear();
  for (size_t b = 0; b < block_max_.size(); ++b) {
    if (!(block_max_[b] >= lowest)) continue;
    const int begin = static_cast<int>(b) * kSkip;
    const int end = std::min(begin + kSkip, vocabulary_size_);
    for (int i = begin; i < end; ++i) {
      if (scores_[i] >= lowest) kept_.push_back(i);
    }
  }
}

// Keeps the likeliest tokens of kept_, the lowest ids among equals: `count` of them, or fewer if a
// shorter prefix has a mass of `goal`. Sorting them all could cost more than a pass of the model,
// so they are counted into bins by score first, and only the bin in which the cut lies is sorted.
void Sampler::cut(size_t count, double goal) {
  struct Bin {
    size_t tokens = 0;
    double mass = 0;
  };
  constexpr int kBins = 256;
  constexpr float kBinsPerNat = 8.f;  // the last bin holds everything below
  std::array<Bin, kBins> bins{};
  const auto bin_of = [&](int32_t token) {
    const float depth = -scores_[token] * kBinsPerNat;
    return depth < kBins - 1 ? static_cast<int>(depth) : kBins - 1;
  };
  for (const int32_t token : kept_) {
    Bin& bin = bins[bin_of(token)];
    ++bin.tokens;
    bin.mass += static_cast<double>(exp_nonpositive(scores_[token]));
  }
  size_t tokens = 0;
  double reached = 0;
  int at = 0;
  while (at < kBins && tokens + bins[at].tokens <= count && reached + bins[at].mass < goal) {
    tokens += bins[at].tokens;
    reached += bins[at].mass;
    ++at;
  }
  if (at == kBins) return;
  border_.clear();
  for (const int32_t token : kept_) {
    if (bin_of(token) == at) border_.push_back(token);
  }
  const auto likelier = [this](int32_t a, int32_t b) {
    return scores_[a] != scores_[b] ? scores_[a] > scores_[b] : a < b;
  };
  std::sort(border_.begin(), border_.end(), likelier);
  size_t chosen = 0;  // of the border
  while (chosen < border_.size() && tokens < count && (reached < goal || tokens == 0)) {
    reached += static_cast<double>(exp_nonpositive(scores_[border_[chosen++]]));
    ++tokens;
  }
  std::erase_if(kept_, [&](int32_t token) {
    const int bin = bin_of(token);
    return bin > at || (bin == at && (chosen == 0 || likelier(border_[chosen - 1], token)));
  });
}

TokenLaw Sampler::filtered_law() {
  const bool limit_count = options_.top_k > 0 && options_.top_k < vocabulary_size_;
  const bool limit_mass = options_.top_p < 1.f;
  const size_t count = limit_count ? options_.top_k : vocabulary_size_;
  const double goal =
      limit_mass && !limit_count ? options_.top_p * mass(scores_.data(), vocabulary_size_) : 0;
  const float lowest_score = options_.min_p > 0.f ? std::log(options_.min_p) : -kInfinity;
  // Most of a vocabulary is far below the best token; what a filter needs is mostly near it.
  if (limit_count || limit_mass) {
    for (const float window : {8.f, 16.f, kInfinity}) {
      collect(-window);
      if (limit_count ? kept_.size() >= count : kept_mass() >= goal) break;
    }
    if (limit_count) cut(count, kInfinity);
    if (limit_mass) cut(kept_.size(), limit_count ? options_.top_p * kept_mass() : goal);
  } else {
    collect(lowest_score);
  }
  std::erase_if(kept_, [&](int32_t token) {
    return !(scores_[token] >= lowest_score) || scores_[token] == -kInfinity;
  });
  const float log_total = static_cast<float>(std::log(kept_mass()));
  // Entry i comes from scores_[kept_[i]] with kept_[i] >= i, so packing in place is safe.
  for (size_t i = 0; i < kept_.size(); ++i) scores_[i] = scores_[kept_[i]] - log_total;
  return {kept_, std::span<const float>(scores_).first(kept_.size())};
}

double Sampler::kept_mass() const {
  double sum = 0;
  for (const int32_t token : kept_) sum += static_cast<double>(exp_nonpositive(scores_[token]));
  return sum;
}

Result<int32_t> Sampler::choose(std::span<const float> logits, uint64_t index) {
  if (options_.greedy()) {
    const bool fits = static_cast<int>(logits.size()) == vocabulary_size_;
    return largest_of(fits ? penalised(logits) : logits);
  }
  const Result<TokenLaw> law = this->law(logits);
  if (!law.ok()) return law.status();
  return race(law.value(), options_.seed, index);
}

}  // namespace sapwood
