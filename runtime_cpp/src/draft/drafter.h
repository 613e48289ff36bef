// Where guesses come from.
//
// A drafter follows the text of one session and, on request, grows a tree of likely continuations.
// How the tree is to be shaped is the request's business (draft/growth.h does the growing for
// drafters that can name a node's candidates); what it costs and needs is the drafter's, declared
// up front so that the engine can refuse early.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "tree/budget.h"
#include "tree/draft_tree.h"
#include "tree/tree_shape.h"

namespace sapwood {

struct DrafterTraits {
  std::string_view name;
  bool deterministic = true;         // tokens chosen by rank: may be verified by target_draw
  bool needs_hidden_states = false;  // of the target's verified rows
  double pass_milliseconds = 0;      // cost of one pass of growing; 0: too small to count
  bool one_pass_per_level = false;   // a pass per depth (a model) or one for the whole tree
};

enum class Growth {
  kChain,     // the likeliest candidate of each node, max_depth long
  kShape,     // the candidates `shape` names by rank
  kBudgeted,  // best first, as long as `cost` says it pays
};

struct DraftRequest {
  Growth growth = Growth::kBudgeted;
  int max_nodes = 0;
  int max_depth = 0;                 // the root's children have depth 1
  int max_width = 16;                // children of one node
  const TreeShape* shape = nullptr;  // kShape
  const CostCurve* cost = nullptr;   // kBudgeted
  double overhead_ms = 0;            // kBudgeted: what a step costs beside the verify pass
};

// What a verify pass found out, accepted or not: the target's logits after the root and every node.
struct VerifiedRows {
  std::span<const int32_t> text;  // up to the root, its last token
  const DraftTree& tree;
  std::span<const float> logits;  // [1 + tree.size()][vocabulary], before any sampling transform
  int vocabulary;
  std::span<const int32_t> emitted;  // what came after the root

  std::span<const float> of(int node) const {  // DraftTree::kRoot included
    return logits.subspan(static_cast<size_t>(node + 1) * vocabulary, vocabulary);
  }
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual const DrafterTraits& traits() const = 0;

  // The session's text is now exactly `tokens` (a prompt). Room for `max_tokens` in all is made
  // here; follow() and propose() do not allocate.
  virtual Status start(std::span<const int32_t> tokens, int max_tokens) = 0;

  // These were appended to the text by the target. Learning from how well they were foreseen
  // belongs here.
  virtual void follow(std::span<const int32_t> tokens) = 0;

  // The rows of the pass that these tokens came from, after follow(): how well a guess was foreseen
  // is judged before the answer is known. Nothing is kept of `rows` itself.
  virtual void observe(const VerifiedRows& rows) { static_cast<void>(rows); }

  // Grows `tree` (empty on entry) beyond the text.
  virtual Status propose(const DraftRequest& request, DraftTree& tree) = 0;
};

}  // namespace sapwood
