// From ids to text, piece by piece: the joined pieces equal one decoding of all ids, and no piece
// ends inside a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sapwood {

// The tokenizer must outlive it. Special tokens, and ids without a token, have no text.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // What is certain after this id. A run of byte tokens (<0x..>) is one decision, so it is held
  // until it has ended.
  std::string push(int32_t id);
  // Whatever is left; half a character becomes U+FFFD.
  std::string finish();

 private:
  void flush_run(std::string* text);

  const Tokenizer* tokenizer_;
  Utf8Stream utf8_;  // of byte-level tokens
  std::string run_;  // bytes of <0x..> tokens
};

// The text that one token stands for on its own, for people to look at: U+FFFD for half characters.
std::string token_as_text(const Tokenizer& tokenizer, int32_t id);

// Finds the stop text that is complete first, however the text is cut into pieces.
class StopMatcher {
 public:
  // None of the stops is empty.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Text that no stop can still claim. Once a stop has matched, the text before it has been given
  // and nothing more will be.
  std::string push(std::string_view piece);
  // The text held back, when no more will come.
  std::string finish();
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace sapwood
