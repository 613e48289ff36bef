// UTF-8: reading and writing one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sapwood {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD

// One character of valid UTF-8 and how many bytes it takes.
struct Utf8Character {
  char32_t value = 0;
  int bytes = 0;
};

// The character at the beginning of `text`, which is not empty. `text` must be valid there.
Utf8Character utf8_first(std::string_view text);

// Where `text` stops being UTF-8: the number of bytes before the first wrong or half character;
// all of them if it is valid. Surrogates, overlong forms and numbers above U+10FFFF are wrong.
size_t utf8_valid_prefix(std::string_view text);
inline bool is_utf8(std::string_view text) { return utf8_valid_prefix(text) == text.size(); }

void append_utf8(char32_t character, std::string* out);

std::u32string utf8_decode(std::string_view valid);
std::string utf8_encode(std::u32string_view text);

// Bytes that arrive in any portions, as text of whole characters. A wrong sequence becomes U+FFFD
// once for each maximal beginning of a character in it (the Unicode standard's practice, and what
// Python and Rust do).
class Utf8Stream {
 public:
  // What is certain by now: the bytes of a character that is not whole yet are kept.
  void push(std::string_view bytes, std::string* out);
  // The rest: U+FFFD for half a character.
  void finish(std::string* out);

 private:
  std::string kept_;  // at most three bytes that may become a character
};

}  // namespace sapwood
