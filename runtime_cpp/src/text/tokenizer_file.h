// tokenizer.json, Hugging Face's file, read into what our tokenizer runs on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/vocabulary.h"

namespace sapwood {

inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;

struct TokenizerFile {
  Vocabulary vocabulary;  // of the model alone
  MergeTable merges;
  BpeOptions bpe;
  std::vector<AddedToken> added;
  bool nfc = false;          // normalised to Unicode's form C first
  bool mark_spaces = false;  // then every space becomes U+2581
  std::vector<SplitRule> splits;
};

// kCorrupt: not a tokenizer.json. kUnsupported: one that asks for something this build does not do;
// the message names it. `name` begins every message.
Result<TokenizerFile> parse_tokenizer_file(std::string_view text, const std::string& name);

}  // namespace sapwood
