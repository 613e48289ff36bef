#include "text/vocabulary.h"

#include <utility>

namespace sapwood {

void Vocabulary::set(int32_t id, std::string text) {
  const size_t index = static_cast<size_t>(id);
  if (index >= texts_.size()) {
    texts_.resize(index + 1);
    used_.resize(index + 1);
  }
  texts_[index] = std::move(text);
  used_[index] = true;
}

void Vocabulary::finish() {
  ids_.clear();
  ids_.reserve(texts_.size());
  for (size_t id = 0; id < texts_.size(); ++id) {
    if (used_[id]) ids_.emplace(texts_[id], static_cast<int32_t>(id));
  }
}

}  // namespace sapwood
