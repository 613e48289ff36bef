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

// Calls visit(run) for this member's part. A run is a block of rows and heads of one kv head: all
// of them, which read K and V together, where whole groups come out even enough; else the query
// heads are cut into equal shares, so that an odd number of kv heads leaves no member idle. A
// group's blocks are dealt out, since the later rows of a prompt see more.
template <typename Visit>
void for_each_attention_run(const AttentionShape& shape, int rows, const ThreadTeam& team,
                            int thread, Visit visit) {
  const int group = shape.heads / shape.kv_heads;
  const int blocks = (rows + kAttentionRows - 1) / kAttentionRows;
  const auto run = [&](int head_begin, int head_end, int block) {
    const int row = block * kAttentionRows;
    visit(AttentionRun{head_begin, head_end, row, std::min(rows, row + kAttentionRows)});
  };
  const int groups = shape.kv_heads * blocks;
  if (groups % team.size() == 0 || groups >= 4 * team.size()) {
    const auto [begin, end] = team.share(groups, thread);
    int item = 0;
    for (int first = 0; first < shape.heads; first += group) {
      for (int dealt = 0; dealt < team.size(); ++dealt) {
        for (int block = dealt; block < blocks; block += team.size(), ++item) {
          if (begin <= item && item < end) run(first, first + group, block);
        }
      }
    }
    return;
  }
  const auto [begin, end] = team.share(blocks * shape.heads, thread);
  for (int first = 0; first < shape.heads; first += group) {
    for (int block = 0; block < blocks; ++block) {
      // The heads of this kv head whose item, head * blocks + block, is in the share.
      const int head_begin = std::max(first, (begin - block + blocks - 1) / blocks);
      const int head_end = std::min(first + group, (end - block + blocks - 1) / blocks);
      if (head_begin < head_end) run(head_begin, head_end, block);
    }
  }
}

}  // namespace sapwood
