#include "verify/tiny_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "verify/exponential.h"
#include "verify/random.h"

namespace sapwood {
namespace {

constexpr float kSpread = 1.5f;       // of logits
constexpr float kNoise = 0.8f;        // of a good drafter
constexpr float kEverything = 200.f;  // above the others: they have probability 0

}  // namespace

std::vector<float> TinyModel::normals(const Path& text, uint64_t stream) const {
  // A counter made of the text; different texts of the lengths used here get different ones.
  uint64_t index = stream;
  for (const int32_t token : text) index = index * 67 + static_cast<uint64_t>(token) + 1;
  std::vector<float> values;
  for (int i = 0; i < vocabulary_; ++i) {
    const uint64_t at = (index * 64 + static_cast<uint64_t>(i)) * 2;
    const double u = counter_uniform(seed_, at);
    const double v = counter_uniform(seed_, at + 1);
    values.push_back(
        static_cast<float>(std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v)));
  }
  return values;
}

const std::vector<float>& TinyModel::target(const Path& text) {
  auto [entry, fresh] = target_.try_emplace(text);
  if (fresh) {
    entry->second = normals(text, 1);
    for (float& logit : entry->second) logit *= kSpread;
  }
  return entry->second;
}

const std::vector<float>& TinyModel::draft(const Path& text) {
  auto [entry, fresh] = draft_.try_emplace(text);
  if (!fresh) return entry->second;
  std::vector<float>& logits = entry->second;
  logits = normals(text, 2);
  const std::vector<float>& target = this->target(text);
  for (int i = 0; i < vocabulary_; ++i) {
    switch (drafter_) {
      case TinyDrafter::kClose:
        logits[i] = target[i] + kNoise * logits[i];
        break;
      case TinyDrafter::kUnrelated:
        logits[i] *= kSpread;
        break;
      case TinyDrafter::kCertain:
        logits[i] = target[i] + kNoise * logits[i];
        break;
    }
  }
  if (drafter_ == TinyDrafter::kCertain) {
    *std::max_element(logits.begin(), logits.end()) += kEverything;
  }
  return logits;
}

std::vector<double> probabilities(const TokenLaw& law, int vocabulary) {
  std::vector<double> p(static_cast<size_t>(vocabulary), 0.0);
  double whole = 0;
  for (int i = 0; i < law.size(); ++i) {
    whole += p[law.token(i)] = static_cast<double>(exp_nonpositive(law.log_p[i]));
  }
  for (double& value : p) value /= whole;
  return p;
}

}  // namespace sapwood
