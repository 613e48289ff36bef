// Scratch memory that is made for a vocabulary's size, and kept while calls ask for the same.
#pragma once

#include <optional>

namespace sapwood::operators {

template <typename T>
class ForVocabulary {
 public:
  // Made again where the size is another: at the first call, or for another model's logits.
  T& of(int vocabulary) {
    if (vocabulary != vocabulary_) {
      made_.emplace(vocabulary);
      vocabulary_ = vocabulary;
    }
    return *made_;
  }

 private:
  std::optional<T> made_;
  int vocabulary_ = 0;
};

}  // namespace sapwood::operators
