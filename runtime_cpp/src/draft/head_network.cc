#include "draft/head_network.h"

#include <algorithm>
#include <utility>

namespace sapwood {

HeadNetwork::HeadNetwork(std::shared_ptr<DraftHead> head)
    : head_(std::move(head)),
      vocabulary_(head_->make_vocabulary()),
      state_size_(static_cast<size_t>(head_->spec().hidden_size)),
      states_((1 + static_cast<size_t>(DraftTree::kCapacity)) * state_size_),
      parents_(static_cast<size_t>(head_->max_rows()) * state_size_) {}

std::span<float> HeadNetwork::state_of(int node) {
  return std::span<float>(states_).subspan(static_cast<size_t>(node + 1) * state_size_,
                                           state_size_);
}

Status HeadNetwork::forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) {
  size_t used = 0;
  for (int node = pass.first_node; node < pass.nodes.size(); ++node, used += state_size_) {
    const std::span<const float> parent = state_of(pass.nodes.parent(node));
    std::copy(parent.begin(), parent.end(), parents_.begin() + static_cast<ptrdiff_t>(used));
  }
  SAPWOOD_TRY(head_->forward(pass.batch, pass.hidden_states, {parents_.data(), used}, vocabulary_,
                             *kv, logits));
  if (pass.batch.output_rows.empty()) return Status::okay();
  const std::span<const float> states = head_->states();
  const auto keep = [&](int row, int node) {
    const auto state = states.subspan(static_cast<size_t>(row) * state_size_, state_size_);
    std::copy(state.begin(), state.end(), state_of(node).begin());
  };
  if (pass.text_rows > 0) keep(pass.text_rows - 1, DraftTree::kRoot);
  for (int node = pass.first_node; node < pass.nodes.size(); ++node) {
    keep(pass.text_rows + node - pass.first_node, node);
  }
  return Status::okay();
}

void HeadNetwork::move_node(int from, int to) {
  const std::span<const float> state = state_of(from);
  std::copy(state.begin(), state.end(), state_of(to).begin());
}

std::optional<float> HeadNetwork::uncertainty(int node) {
  return head_->uncertainty(state_of(node));
}

}  // namespace sapwood
