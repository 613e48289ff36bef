#include "text/pre_tokenizer.h"

#include <array>
#include <cstddef>
#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"

namespace sapwood {
namespace {

using std::string_view;
using namespace std::string_view_literals;

constexpr string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

enum class Kind {
  kEnd,
  kLetter,
  kNumber,
  kSpace,
  kBreak,
  kOther
};  // kBreak: \r and \n, spaces too

struct Character {
  char32_t value = 0;
  size_t bytes = 0;
  Kind kind = Kind::kEnd;

  bool white() const { return kind == Kind::kSpace || kind == Kind::kBreak; }
};

// The character at a place; kEnd behind the last.
Character at(string_view text, size_t place) {
  if (place >= text.size()) return {};
  const Utf8Character read = utf8_first(text.substr(place));
  Character found{read.value, static_cast<size_t>(read.bytes), Kind::kOther};
  if (read.value == '\r' || read.value == '\n') {
    found.kind = Kind::kBreak;
  } else if (is_letter(read.value)) {
    found.kind = Kind::kLetter;
  } else if (is_number(read.value)) {
    found.kind = Kind::kNumber;
  } else if (is_space(read.value)) {
    found.kind = Kind::kSpace;
  }
  return found;
}

// The end of the run of this kind that begins at a place, of at most `most` characters.
size_t run_end(string_view text, size_t place, Kind kind, int most = -1) {
  for (Character next = at(text, place); next.kind == kind && most != 0; next = at(text, place)) {
    place += next.bytes;
    --most;
  }
  return place;
}

size_t contraction(string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto small = [&](size_t place) {
    const char letter = place < text.size() ? text[place] : '\0';
    return any_case && letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a')
                                                      : letter;
  };
  const char first = small(1);
  const char second = small(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  if (first == 'l' && second == 'l') return 3;
  // The long s, of which `s` is another case.
  if (any_case && text.substr(1).starts_with("\u017f"sv)) return 3;
  return 0;
}

// `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word behind it.
size_t white_space(string_view text) {
  size_t end = 0;
  size_t last = 0;
  for (Character next = at(text, 0); next.white(); next = at(text, end)) {
    last = end;
    end += next.bytes;
  }
  return end == text.size() || last == 0 ? end : last;
}

size_t gpt2_match(string_view text) {
  if (const size_t length = contraction(text, false); length > 0) return length;
  const size_t begin = text[0] == ' ' ? 1 : 0;  // the optional space
  const Character first = at(text, begin);
  if (first.kind == Kind::kEnd || first.white()) return white_space(text);
  return run_end(text, begin, first.kind);
}

size_t llama3_match(string_view text, int digits) {
  if (const size_t length = contraction(text, true); length > 0) return length;
  const Character first = at(text, 0);
  if (first.kind == Kind::kLetter) return run_end(text, 0, Kind::kLetter);
  if (first.kind == Kind::kNumber) return run_end(text, 0, Kind::kNumber, digits);
  if (first.kind != Kind::kBreak && at(text, first.bytes).kind == Kind::kLetter) {
    return run_end(text, first.bytes, Kind::kLetter);
  }
  const size_t begin = first.value == ' ' ? 1 : 0;
  if (at(text, begin).kind == Kind::kOther) {
    return run_end(text, run_end(text, begin, Kind::kOther), Kind::kBreak);
  }
  size_t after_break = 0;  // `\s*[\r\n]+`: up to the last line break of the white space here
  size_t end = 0;
  for (Character next = at(text, 0); next.white(); next = at(text, end)) {
    end += next.bytes;
    if (next.kind == Kind::kBreak) after_break = end;
  }
  return after_break > 0 ? after_break : white_space(text);
}

// A run of one sort: digits (one, if each stands alone) or anything else.
size_t digits_match(string_view text, bool each) {
  size_t end = 0;
  bool digits = false;
  while (end < text.size()) {
    const Utf8Character next = utf8_first(text.substr(end));
    const bool digit = is_digit(next.value);
    if (end > 0 && digit != digits) break;
    digits = digit;
    end += static_cast<size_t>(next.bytes);
    if (digit && each) break;
  }
  return end;
}

size_t match(SplitRule rule, string_view text) {
  switch (rule) {
    case SplitRule::kGpt2:
      return gpt2_match(text);
    case SplitRule::kLlama3:
      return llama3_match(text, 3);
    case SplitRule::kQwen2:
      return llama3_match(text, 1);
    case SplitRule::kEachDigit:
      return digits_match(text, true);
    case SplitRule::kDigitRuns:
      return digits_match(text, false);
    case SplitRule::kAfterSpaces: {
      const size_t space = text.find(' ');
      return space == string_view::npos ? text.size() : space + 1;
    }
  }
  return text.size();
}

}  // namespace

bool known_pattern(string_view pattern, SplitRule* rule) {
  constexpr std::array<std::pair<string_view, SplitRule>, 3> kKnown = {
      {{kGpt2Pattern, SplitRule::kGpt2},
       {kLlama3Pattern, SplitRule::kLlama3},
       {kQwen2Pattern, SplitRule::kQwen2}}};
  for (const auto& [known, its_rule] : kKnown) {
    if (pattern == known) {
      *rule = its_rule;
      return true;
    }
  }
  return false;
}

void split(SplitRule rule, std::vector<string_view>* pieces) {
  std::vector<string_view> cut;
  for (string_view text : *pieces) {
    while (!text.empty()) {
      const size_t length = match(rule, text);
      cut.push_back(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  *pieces = std::move(cut);
}

}  // namespace sapwood
