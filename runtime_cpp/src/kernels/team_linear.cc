#include "kernels/team_linear.h"

#include "kernels/kernels.h"
#include "kernels/team_share.h"

namespace sapwood {

void team_linear(const LinearWeights& weights, const float* x, int rows, float* y,
                 QuantizedScratch& scratch, ThreadTeam& team, int thread) {
  const KernelTable& kernel = kernels();
  const QuantizedRows quantized = scratch.rows(weights.inputs);
  const auto [row_begin, row_end] = team.share(rows, thread);
  kernel.quantize_rows(x, weights.inputs, weights.inputs, row_begin, row_end, quantized);
  team.barrier();
  const auto [begin, end] = panel_share(weights, team, thread);
  kernel.linear(weights, quantized, rows, begin, end, false, y, weights.outputs);
  team.barrier();
}

}  // namespace sapwood
