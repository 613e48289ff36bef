// How a team shares linear layers and attention.
#pragma once

#include <algorithm>
#include <utility>

#include "base/thread_team.h"
#include "kernels/attention_limits.h"
#include "kernels/kernels.h"

namespace sapwood {

// A member's panels, in pairs, since the kernels compute two at a time.
inline std::pair<int, int> panel_share(const LinearWeights& linear, const ThreadTeam& team,
                                       int thread) {
  const auto [begin, end] = team.share((linear.panels() + 1) / 2, thread);
  return {2 * begin, std::min(2 * end, linear.panels())};
}

// What one call of the attention kernel computes: query heads of one kv head, for a block of rows.
struct AttentionRun {
  int head_begin, head_end;
  int row_begin, row_end;
};

// Calls visit(run) for this member's part: query heads times blocks of rows, cut into equal shares,
// and each share into runs that stay within a block and a kv head. By query heads, so that an odd
// number of kv heads leaves no member idle; and heads before blocks, so that the later rows of a
// prompt, which see more, fall to all members alike.
template <typename Visit>
void for_each_attention_run(const AttentionShape& shape, int rows, const ThreadTeam& team,
                            int thread, Visit visit) {
  const int group = shape.heads / shape.kv_heads;
  const int blocks = (rows + kAttentionRows - 1) / kAttentionRows;
  const auto [begin, end] = team.share(blocks * shape.heads, thread);
  for (int first = 0; first < shape.heads; first += group) {
    for (int block = 0; block < blocks; ++block) {
      // The heads of this kv head whose item, head * blocks + block, is in the share.
      const int head_begin = std::max(first, (begin - block + blocks - 1) / blocks);
      const int head_end = std::min(first + group, (end - block + blocks - 1) / blocks);
      if (head_begin >= head_end) continue;
      const int row = block * kAttentionRows;
      visit(AttentionRun{head_begin, head_end, row, std::min(rows, row + kAttentionRows)});
    }
  }
}

}  // namespace sapwood
