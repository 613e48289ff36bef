#include "draft/parallel_network.h"

#include <algorithm>
#include <utility>

namespace sapwood {

ParallelNetwork::ParallelNetwork(std::shared_ptr<ParallelHeads> heads)
    : heads_(std::move(heads)),
      vocabulary_(heads_->make_vocabulary()),
      laws_(static_cast<size_t>(heads_->depths()) * vocabulary_.size()),
      uncertainty_(static_cast<size_t>(heads_->depths())),
      depths_(DraftTree::kCapacity) {}

Status ParallelNetwork::forward(const DraftPass& pass, KvStore*, std::span<float> logits) {
  const size_t size = static_cast<size_t>(law_size());
  auto out = logits.begin();
  const auto write = [&](int depth) {
    const auto law = std::span<const float>(laws_).subspan(static_cast<size_t>(depth) * size, size);
    out = std::copy(law.begin(), law.end(), out);
  };
  if (pass.text_rows > 0) {
    const size_t last = static_cast<size_t>(pass.text_rows) - 1;
    const size_t features = static_cast<size_t>(hidden_state_size());
    SAPWOOD_TRY(heads_->forward(pass.batch.tokens[last],
                                pass.hidden_states.subspan(last * features, features), vocabulary_,
                                laws_));
    for (int d = 0; d < heads_->depths(); ++d) uncertainty_[d] = heads_->uncertainty(d);
    write(0);
  }
  for (int node = pass.first_node; node < pass.nodes.size(); ++node) {
    depths_[node] = static_cast<int16_t>(pass.nodes.depth(node));
    write(depths_[node]);
  }
  return Status::okay();
}

std::optional<float> ParallelNetwork::uncertainty(int node) {
  return uncertainty_[node == DraftTree::kRoot ? 0 : depths_[node]];
}

}  // namespace sapwood
