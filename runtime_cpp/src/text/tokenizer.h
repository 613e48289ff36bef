// Text to ids and back, with the ids that Hugging Face's tokenizers give for the same
// tokenizer.json.
//
//   Result<Tokenizer> tokenizer = Tokenizer::parse(text, "tokenizer.json");
//   std::vector<int32_t> ids = tokenizer->encode("Hello", false);
//
// Not thread-safe: encoding reuses its working memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer_file.h"

namespace sapwood {

class Tokenizer {
 public:
  static Result<Tokenizer> parse(std::string_view definition, const std::string& name);

  // The ids of `text` (valid UTF-8), without a beginning-of-sequence token. With `markers` the
  // special tokens' own texts in it become special tokens; without, they are text like any other.
  std::vector<int32_t> encode(std::string_view text, bool markers);

  // Appends the ids of a stretch of text between markers, in which no text is special.
  void encode_between_markers(std::string_view text, std::vector<int32_t>* ids);

  // Special tokens alone, to find those that a chat template wrote.
  const TokenFinder& special_tokens() const { return special_; }
  bool is_special(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < is_special_.size() &&
           is_special_[static_cast<size_t>(id)];
  }

  // A token as it is written in the file; null for an id that has none.
  const std::string* token_text(int32_t id) const;

  // Byte-level tokens are strings of bytes; others are text, in which U+2581 is a space and <0x..>
  // a byte.
  bool byte_level() const { return file_.bpe.bytes; }

  // A text of this many bytes has at least so many ids.
  size_t least_ids(size_t bytes) const { return bytes / most_bytes_; }

 private:
  enum class Markers { kFound, kSkipped, kNone };

  explicit Tokenizer(TokenizerFile file);

  void encode_added(std::string_view text, Markers markers, std::vector<int32_t>* ids);
  void encode_text(std::string_view text, Markers markers, std::vector<int32_t>* ids);
  void encode_normalized(std::string_view text, Markers markers, std::vector<int32_t>* ids);

  TokenizerFile file_;
  Vocabulary added_texts_;
  TokenFinder raw_;         // found in the text as it came
  TokenFinder normalized_;  // found in the normalised text
  TokenFinder special_;
  std::vector<bool> is_special_;  // by id
  size_t most_bytes_ = 1;         // of text that one id can stand for
  Bpe bpe_;
  std::vector<std::string_view> pieces_;
};

}  // namespace sapwood
