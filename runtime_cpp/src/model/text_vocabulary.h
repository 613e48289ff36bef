// A draft's vocabulary, and beside it the tokens of the text that it lacks.
//
// A draft's head covers the tokens that its target says most (FR-Spec: Zhao et al., 2025). What it
// leaves out is rare in general and not in a text that has it: names, subjects, another language.
// Where the draft's head matrix is the target's own, cut down, rows of the target's can be set
// beside it at any time: every token of the text gets one for the price of a copy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/linear.h"
#include "kernels/scratch.h"

namespace sapwood {

class TextVocabulary {
 public:
  // own: the draft's tokens, by entry. target_head: the target's matrix, a row for every token of
  // its vocabulary; it must outlive this. places: for tokens of the text.
  TextVocabulary(std::span<const int32_t> own, const LinearWeights& target_head, int places);

  // Entries of a law: the draft's own, then those of the text, taken or not.
  int size() const { return static_cast<int>(tokens_.size()); }
  int vocabulary_size() const { return target_head_.outputs; }  // the target's
  // By entry; kNone where none has been taken.
  std::span<const int32_t> tokens() const { return tokens_; }
  int entry_of(int32_t token) const { return entries_[static_cast<size_t>(token)]; }  // or kNone
  static constexpr int32_t kNone = -1;

  // The tokens of the text, and no others from before. No allocation here and below.
  void begin(std::span<const int32_t> text);
  // Further ones. When there is no place left, the oldest makes room.
  void add(std::span<const int32_t> text);

  // The matrix of the text's tokens, an output for each place that was taken.
  LinearWeights rows() const;
  // Of entries without a token, in a law [size()] whose others are computed.
  void fill_untaken(std::span<float> logits) const;

 private:
  const LinearWeights target_head_;
  const int own_;
  std::vector<int32_t> tokens_;   // [size()]
  std::vector<int32_t> entries_;  // by token of the target's vocabulary
  ScratchArray<uint8_t> packed_;  // [places][inputs]
  int taken_ = 0;
  int next_ = 0;  // the place that is taken next
};

}  // namespace sapwood
