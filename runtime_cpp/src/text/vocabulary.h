// The tokens of a tokenizer: their texts by id and back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sapwood {

class Vocabulary {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kMaxId = (1 << 22) - 1;

  // Texts may not change once the first is looked up: build it, then use it. A text that is there
  // already keeps its first id for lookups.
  void set(int32_t id, std::string text);
  void finish();

  int32_t find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? kNone : found->second;
  }
  // Null for an id without a token.
  const std::string* text(int32_t id) const {
    if (id < 0 || static_cast<size_t>(id) >= texts_.size()) return nullptr;
    return used_[static_cast<size_t>(id)] ? &texts_[static_cast<size_t>(id)] : nullptr;
  }
  int32_t size() const { return static_cast<int32_t>(texts_.size()); }  // largest id + 1

 private:
  std::vector<std::string> texts_;
  std::vector<bool> used_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

}  // namespace sapwood
