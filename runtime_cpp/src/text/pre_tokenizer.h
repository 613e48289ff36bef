// Cutting a text into the pieces within which BPE merges, as Hugging Face's pre-tokenizers do.
#pragma once

#include <string_view>
#include <vector>

namespace sapwood {

enum class SplitRule {
  kGpt2,         // the pattern of GPT-2: contractions, letters, numbers, the rest, white space
  kLlama3,       // that of Llama 3: numbers in threes, line breaks with what is before them
  kQwen2,        // that of Qwen 2 and 3: like Llama 3's, every number alone
  kEachDigit,    // every digit alone
  kDigitRuns,    // runs of digits alone
  kAfterSpaces,  // after every space
};

// The regular expressions that this knows by heart, as they stand in tokenizer.json; false for any
// other. An engine for regular expressions would know them all, at many times the cost of a match.
bool known_pattern(std::string_view pattern, SplitRule* rule);

// Cuts every one of `pieces` (valid UTF-8, none empty) by the rule.
void split(SplitRule rule, std::vector<std::string_view>* pieces);

}  // namespace sapwood
