#include "kernels/hidden_states.h"

#include <algorithm>
#include <string>

#include "memory/pooled_floats.h"

namespace sapwood {

Status HiddenStates::choose(std::span<const int> layers, int all_layers, int max_rows,
                            int hidden_size) {
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 0 || layers[i] > all_layers || (i > 0 && layers[i] <= layers[i - 1])) {
      return Status(Code::kInvalidArgument, "hidden states of layer " + std::to_string(layers[i]) +
                                                ": name layers from 0, the embedding, to " +
                                                std::to_string(all_layers) +
                                                ", each once and in ascending order");
    }
  }
  layers_.assign(layers.begin(), layers.end());
  states_ = pooled_floats(static_cast<size_t>(max_rows) * layers.size() * hidden_size);
  rows_ = 0;
  hidden_size_ = hidden_size;
  return Status::okay();
}

bool HiddenStates::keeps(int layer) const { return std::ranges::binary_search(layers_, layer); }

void HiddenStates::keep(int layer, const float* hidden, int row_begin, int row_end) {
  if (!keeps(layer)) return;
  const size_t place = std::ranges::lower_bound(layers_, layer) - layers_.begin();
  for (int row = row_begin; row < row_end; ++row) {
    std::copy_n(hidden + static_cast<size_t>(row) * hidden_size_, hidden_size_,
                states_.get() + (row * layers_.size() + place) * hidden_size_);
  }
}

std::span<const float> HiddenStates::states() const {
  return {states_.get(), rows_ * layers_.size() * hidden_size_};
}

}  // namespace sapwood
