// What the layers of a pass gave, kept for a draft that reads it: model/model.h says what callers
// see of it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"

namespace sapwood {

class HiddenStates {
 public:
  // The outputs of these layers, of up to `max_rows` rows of `hidden_size`; 0 is the embedding.
  // kInvalidArgument unless they are ascending and among 0 to `all_layers`; that changes nothing.
  // Allocates; nothing below does.
  Status choose(std::span<const int> layers, int all_layers, int max_rows, int hidden_size);

  std::span<const int> layers() const { return layers_; }
  bool keeps(int layer) const;

  // A pass of so many rows.
  void begin(int rows) { rows_ = rows; }

  // Rows row_begin to row_end of hidden [rows][hidden_size], a layer's output, if it is to be kept.
  void keep(int layer, const float* hidden, int row_begin, int row_end);

  // [rows][layers][hidden_size] of the latest pass.
  std::span<const float> states() const;

 private:
  std::vector<int> layers_;
  std::shared_ptr<float[]> states_;  // pooled: what reads them may be a device
  int rows_ = 0;
  int hidden_size_ = 0;
};

}  // namespace sapwood
