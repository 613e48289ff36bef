#include "text/added_tokens.h"

#include <algorithm>
#include <functional>

namespace sapwood {

void TokenFinder::add(const AddedToken& token) {
  if (token.content.empty() || !tokens_.emplace(token.content, token).second) return;
  std::vector<size_t>& lengths = lengths_[static_cast<uint8_t>(token.content[0])];
  const auto place =
      std::lower_bound(lengths.begin(), lengths.end(), token.content.size(), std::greater<>());
  if (place == lengths.end() || *place != token.content.size()) {
    lengths.insert(place, token.content.size());
  }
}

const AddedToken* TokenFinder::longest_at_begin(std::string_view text, bool special) const {
  if (text.empty()) return nullptr;
  for (const size_t length : lengths_[static_cast<uint8_t>(text[0])]) {
    if (length > text.size()) continue;
    const auto found = tokens_.find(text.substr(0, length));
    if (found != tokens_.end() && (special || !found->second.special)) return &found->second;
  }
  return nullptr;
}

}  // namespace sapwood
