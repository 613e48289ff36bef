#include "model/text_vocabulary.h"

#include <algorithm>
#include <cstring>

#include "kernels/packed_rows.h"

namespace sapwood {
namespace {

// So far below every logit that its probability is zero, and finite under any temperature.
constexpr float kImpossible = -1e30f;

LinearWeights places_of(const LinearWeights& target_head, int places) {
  return {nullptr, places, target_head.inputs, target_head.format};
}

}  // namespace

TextVocabulary::TextVocabulary(std::span<const int32_t> own, const LinearWeights& target_head,
                               int places)
    : target_head_(target_head),
      own_(static_cast<int>(own.size())),
      tokens_(own.begin(), own.end()),
      entries_(static_cast<size_t>(target_head.outputs), kNone),
      packed_(places_of(target_head, places).bytes()) {
  for (int entry = 0; entry < own_; ++entry) entries_[own[entry]] = entry;
  tokens_.resize(own.size() + static_cast<size_t>(places), kNone);
  std::memset(packed_.data(), 0, places_of(target_head, places).bytes());
}

void TextVocabulary::begin(std::span<const int32_t> text) {
  for (int entry = own_; entry < own_ + taken_; ++entry) {
    entries_[tokens_[entry]] = kNone;
    tokens_[entry] = kNone;
  }
  taken_ = next_ = 0;
  add(text);
}

void TextVocabulary::add(std::span<const int32_t> text) {
  const int places = size() - own_;
  if (places == 0) return;
  for (const int32_t token : text) {
    if (entries_[token] != kNone) continue;
    const int entry = own_ + next_;
    if (tokens_[entry] != kNone) entries_[tokens_[entry]] = kNone;
    copy_packed_row(target_head_, token, places_of(target_head_, places), packed_.data(), next_);
    tokens_[entry] = token;
    entries_[token] = entry;
    taken_ = std::max(taken_, next_ + 1);
    next_ = (next_ + 1) % places;
  }
}

LinearWeights TextVocabulary::rows() const {
  LinearWeights rows = places_of(target_head_, taken_);
  rows.data = packed_.data();
  return rows;
}

void TextVocabulary::fill_untaken(std::span<float> logits) const {
  std::ranges::fill(logits.subspan(static_cast<size_t>(own_ + taken_)), kImpossible);
}

}  // namespace sapwood
