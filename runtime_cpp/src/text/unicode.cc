#include "text/unicode.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "text/utf8.h"

namespace sapwood {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

struct CombiningRange {
  char32_t first;
  char32_t last;
  uint8_t combining_class;
};

#include "text/unicode_tables.inc"

// Hangul syllables are composed by arithmetic (the Unicode standard, section 3.12).
constexpr char32_t kSyllables = 0xac00;
constexpr char32_t kLeads = 0x1100;
constexpr char32_t kVowels = 0x1161;
constexpr char32_t kTails = 0x11a7;
constexpr char32_t kLeadCount = 19;
constexpr char32_t kVowelCount = 21;
constexpr char32_t kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

template <typename Entry>
const Entry* find_range(std::span<const Entry> ranges, char32_t character) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), character,
                       [](char32_t wanted, const Entry& range) { return wanted < range.first; });
  if (after == ranges.begin() || std::prev(after)->last < character) return nullptr;
  return &*std::prev(after);
}

template <size_t Count>
bool contains(const Range (&ranges)[Count], char32_t character) {
  return find_range(std::span<const Range>(ranges), character) != nullptr;
}

int combining_class(char32_t character) {
  const auto* found = find_range(std::span<const CombiningRange>(kCombining), character);
  return found != nullptr ? found->combining_class : 0;
}

void append_decomposition(char32_t character, std::u32string* out) {
  const char32_t syllable = character - kSyllables;
  if (syllable < kSyllableCount) {
    out->push_back(kLeads + syllable / (kVowelCount * kTailCount));
    out->push_back(kVowels + syllable / kTailCount % kVowelCount);
    if (syllable % kTailCount != 0) out->push_back(kTails + syllable % kTailCount);
    return;
  }
  const auto* found = std::lower_bound(
      std::begin(kDecompositions), std::end(kDecompositions), character,
      [](const char32_t(&entry)[5], char32_t wanted) { return entry[0] < wanted; });
  if (found == std::end(kDecompositions) || (*found)[0] != character) {
    out->push_back(character);
    return;
  }
  for (int i = 1; i < 5 && (*found)[i] != 0; ++i) out->push_back((*found)[i]);
}

// 0 if the two do not compose.
char32_t composition(char32_t first, char32_t second) {
  const char32_t lead = first - kLeads;
  const char32_t vowel = second - kVowels;
  if (lead < kLeadCount && vowel < kVowelCount) {
    return kSyllables + (lead * kVowelCount + vowel) * kTailCount;
  }
  const char32_t syllable = first - kSyllables;
  const char32_t tail = second - kTails;
  if (syllable < kSyllableCount && syllable % kTailCount == 0 && tail > 0 && tail < kTailCount) {
    return first + tail;
  }
  const auto* found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair(first, second),
                       [](const char32_t(&entry)[3], std::pair<char32_t, char32_t> wanted) {
                         return std::pair(entry[0], entry[1]) < wanted;
                       });
  if (found == std::end(kCompositions) || (*found)[0] != first || (*found)[1] != second) return 0;
  return (*found)[2];
}

// Marks behind a starter, in the order of their classes; equal ones stay in theirs.
void order_marks(std::u32string& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, text.end(), [](char32_t mark) { return combining_class(mark) == 0; });
    std::stable_sort(begin, end, [](char32_t left, char32_t right) {
      return combining_class(left) < combining_class(right);
    });
    begin = end;
  }
}

void compose(std::u32string& text) {
  size_t kept = 0;
  size_t starter = text.size();  // none yet
  int previous = -1;             // the class of what stands between the starter and here
  for (const char32_t character : std::u32string(text)) {
    const int its_class = combining_class(character);
    if (starter < kept && (previous < its_class || previous == -1)) {
      if (const char32_t both = composition(text[starter], character); both != 0) {
        text[starter] = both;
        continue;
      }
    }
    if (its_class == 0) {
      starter = kept;
      previous = -1;
    } else {
      previous = its_class;
    }
    text[kept++] = character;
  }
  text.resize(kept);
}

}  // namespace

bool is_letter(char32_t character) { return contains(kLetters, character); }
bool is_number(char32_t character) { return contains(kNumbers, character); }
bool is_space(char32_t character) { return contains(kSpaces, character); }
bool is_digit(char32_t character) { return contains(kDigits, character); }

std::string normalize_nfc(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(),
                                 [](char byte) { return static_cast<uint8_t>(byte) < 0x80; });
  if (plain) return std::string(text);
  std::u32string decomposed;
  decomposed.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character first = utf8_first(text);
    append_decomposition(first.value, &decomposed);
    text.remove_prefix(static_cast<size_t>(first.bytes));
  }
  order_marks(decomposed);
  compose(decomposed);
  return utf8_encode(decomposed);
}

}  // namespace sapwood
