// Linear layers over rows of floats, shared by a team.
#pragma once

#include <span>

#include "base/thread_team.h"
#include "kernels/linear.h"
#include "kernels/scratch.h"

namespace sapwood {

// y [rows][outputs] = weights * x, x [rows][inputs]. Called by every member of the team with its
// index; ends with a barrier. A member may have written its own share of the rows of x
// (team.share(rows, thread)) since the last barrier, no others.
void team_linear(const LinearWeights& weights, const float* x, int rows, float* y,
                 QuantizedScratch& scratch, ThreadTeam& team, int thread);

// Several layers over the same x, side by side in every row of y [rows][stride]. All have as many
// inputs; one without outputs takes no place.
void team_linear(std::span<const LinearWeights> layers, const float* x, int rows, float* y,
                 int stride, QuantizedScratch& scratch, ThreadTeam& team, int thread);

}  // namespace sapwood
