#include "kernels/team_linear.h"

#include "kernels/kernels.h"
#include "kernels/team_share.h"

namespace sapwood {

void team_linear(const LinearWeights& weights, const float* x, int rows, float* y,
                 QuantizedScratch& scratch, ThreadTeam& team, int thread) {
  team_linear({&weights, 1}, x, rows, y, weights.outputs, scratch, team, thread);
}

void team_linear(std::span<const LinearWeights> layers, const float* x, int rows, float* y,
                 int stride, QuantizedScratch& scratch, ThreadTeam& team, int thread) {
  const KernelTable& kernel = kernels();
  const int inputs = layers.front().inputs;
  const QuantizedRows quantized = scratch.rows(inputs);
  const auto [row_begin, row_end] = team.share(rows, thread);
  kernel.quantize_rows(x, inputs, inputs, row_begin, row_end, quantized);
  team.barrier();
  for (const LinearWeights& layer : layers) {
    const auto [begin, end] = panel_share(layer, team, thread);
    kernel.linear(layer, quantized, rows, begin, end, false, y, stride);
    y += layer.outputs;
  }
  team.barrier();
}

}  // namespace sapwood
