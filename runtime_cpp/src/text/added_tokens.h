// Tokens that are found in a text before it is cut into pieces: markers of chat templates, and the
// words that a vocabulary fixes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sapwood {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool special = false;     // has no text when ids are decoded
  bool normalized = false;  // looked for in the normalised text, not in the text as it came
};

// The longest of a set of tokens that stands at a place.
class TokenFinder {
 public:
  void add(const AddedToken& token);

  // The one that `text` begins with, or null. `special`: whether special ones count.
  const AddedToken* longest_at_begin(std::string_view text, bool special = true) const;
  bool empty() const { return tokens_.empty(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, AddedToken, Hash, std::equal_to<>> tokens_;
  std::array<std::vector<size_t>, 256> lengths_;  // by first byte, of all tokens, longest first
};

}  // namespace sapwood
