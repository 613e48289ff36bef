#include "operators/layer.h"

#include <algorithm>

namespace sapwood::operators {

void run_layer(const LayerShape& shape, const LayerWeights& weights, const Tensor& hidden,
               const Tensor& rotary, const CacheCall& cache, float* hidden_out,
               Resources& resources) {
  if (hidden_out != hidden.data) {
    std::copy_n(hidden.as<float>(), hidden.elements(), hidden_out);
  }
  const int rows = cache.batch.rows();
  if (rows == 0) return;
  LayerWorkspace& workspace = resources.layer_workspace(shape, rows, cache.visible_tokens);
  ThreadTeam& team = resources.team();
  team.run([&](int thread) {
    decoder_layer(shape, weights, cache.batch, rotary.as<float>(), cache.kv, hidden_out, workspace,
                  team, thread);
  });
  resources.show(hidden_out, rows);
}

}  // namespace sapwood::operators
