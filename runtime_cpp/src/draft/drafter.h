// Where guesses come from.
//
// A drafter follows the text of one session and, on request, grows a tree of likely continuations.
// How the tree is to be shaped is the request's business (draft/growth.h does the growing for
// drafters that can name a node's candidates); what it costs and needs is the drafter's, declared
// up front so that the engine can refuse early.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "sync/timeline.h"
#include "trace/tracing.h"
#include "tree/budget.h"
#include "tree/chance.h"
#include "tree/draft_tree.h"
#include "tree/proposals.h"
#include "tree/pruning.h"
#include "tree/tree_shape.h"
#include "verify/race.h"
#include "verify/sampling.h"

namespace sapwood {

struct DrafterTraits {
  std::string_view name;
  bool deterministic = true;     // propose(): tokens chosen by rank
  bool gives_proposals = false;  // propose_sampled(): tokens drawn, with the laws they came from
  // Cost of one pass of growing, as measured so far; propose() weighs it against the budget itself,
  // and DraftRequest::overhead_ms leaves it out. 0: too small to count.
  double pass_milliseconds = 0;
  bool one_pass_per_level = false;  // a pass per depth (a model) or one for the whole tree
  int vocabulary_size = 0;          // whose ids it drafts in; 0: any
  int context_length = 0;           // of a model; a longer text it does not look at; 0: any
  // Layers of the target, counted from 1, whose outputs it reads (Model::keep_hidden_states).
  std::span<const int> hidden_layers = {};
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
  // kChain: the chain is no longer than draft_length() of the first position's entropy allows
  // (tree/controller.h).
  bool length_by_entropy = false;
  // The controller, with the beta it has by now: which of a node's candidates stay (null: all). A
  // sampled tree is drawn from what it leaves; a drafter with distributions of its own asks it for
  // ranked trees too, and one with a trained head sets Candidates::uncertainty for it. Lookups by
  // rank leave pruning to the budget.
  const Pruning* pruning = nullptr;
  // Of the answer: logits of a draft go through the same transform as the target's. The seed is 0
  // here; who draws a draft asks Chance.
  SamplingOptions sampling = {};
  // look_ahead() follows: what a tree has no use for may lie on the text's way all the same.
  bool looks_ahead = false;
  // When the tree is to be handed over as far as it has grown: a drafter whose passes cost
  // something looks at the clock between them.
  Deadline deadline = kNoDeadline;
  bool out_of_time() const { return is_past(deadline); }
  // Where stages inside drafting are recorded, if anywhere, and what they have in common.
  Tracing trace = {};
  TraceEvent traced = {};
  TraceEvent pruning_event() const {
    TraceEvent event = traced;
    event.name = TraceName::kPruneController;
    return event;
  }
};

// What a verify pass found out, accepted or not: the target's logits after the root and every node.
struct VerifiedRows {
  std::span<const int32_t> text;  // up to the root, its last token
  const DraftTree& tree;
  std::span<const float> logits;  // [1 + tree.size()][vocabulary], before any sampling transform
  int vocabulary;
  std::span<const int32_t> emitted;  // what came after the root
  // [1 + tree.size()][traits().hidden_layers.size()][hidden size], where the drafter reads them.
  std::span<const float> hidden_states = {};

  std::span<const float> of(int node) const {  // DraftTree::kRoot included
    return logits.subspan(static_cast<size_t>(node + 1) * vocabulary, vocabulary);
  }
};

// What came of looking ahead in the step before.
enum class Ahead {
  kNone,       // there was none
  kKept,       // the text went where it had looked
  kDiscarded,  // the text went elsewhere
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual const DrafterTraits& traits() const = 0;

  // What will decide the draws of the next text; called before its start(). A drafter may use it:
  // the text does not depend on it (verify/race.h). Output position 0 is the first token after
  // start().
  virtual void foresee(const TargetDraws& draws) { static_cast<void>(draws); }

  // The session's text is now exactly `tokens` (a prompt). Room for `max_tokens` in all is made
  // here; follow() and propose() do not allocate.
  virtual Status start(std::span<const int32_t> tokens, int max_tokens) = 0;

  // Where traits() names hidden_layers. Of the text that start() was told, the first so many
  // positions whose hidden states it has no use for any more; those of the others, but for the last
  // token's, come next, in order and in pieces: the target's after positions first, first + 1, ...
  // [..][hidden_layers.size()][hidden size]. Those of verified rows come with observe().
  virtual int hidden_states_taken() const { return std::numeric_limits<int>::max(); }
  virtual Status read_prompt(int first, std::span<const float> hidden_states) {
    static_cast<void>(first), static_cast<void>(hidden_states);
    return Status::okay();
  }

  // These were appended to the text by the target. Learning from how well they were foreseen
  // belongs here.
  virtual void follow(std::span<const int32_t> tokens) = 0;

  // The rows of the pass that these tokens came from, after follow(): how well a guess was foreseen
  // is judged before the answer is known. Nothing is kept of `rows` itself.
  virtual void observe(const VerifiedRows& rows) { static_cast<void>(rows); }

  // Grows `tree` (empty on entry) beyond the text, choosing tokens by rank.
  virtual Status propose(const DraftRequest& request, DraftTree& tree) = 0;

  // After propose(), while the target verifies its tree: does a piece of work, one pass at most,
  // towards the tree that will be asked for next, by what is likeliest to come of this one. False,
  // and nothing done: there is no more that would help. Nothing need come of it: if follow() then
  // brings something else, it is forgotten. Must not allocate.
  virtual bool look_ahead(const DraftRequest& request) {
    static_cast<void>(request);
    return false;
  }
  // Of the latest propose(): what the passes that look_ahead() had done for its tree would have
  // cost it.
  virtual double saved_milliseconds() const { return 0; }
  virtual Ahead came_of_ahead() const { return Ahead::kNone; }

  // Draws `tree` from laws that are left in `proposals` (both empty on entry), where traits() says
  // gives_proposals; for the verifiers of sampled trees. Each child comes from Proposals::draw of
  // its parent, in order, and stays: what is decided (which node draws next, whether one more) is
  // decided before the draw (MATH.md, section 4). With max_width 1 no node gets two children. Luck
  // comes from `chance` alone. tree/sampled_tree.h does all of it for a drafter that can name a
  // node's candidates. Must not allocate.
  virtual Status propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                                 Proposals& proposals) {
    static_cast<void>(request), static_cast<void>(chance);
    static_cast<void>(tree), static_cast<void>(proposals);
    return Status(Code::kUnsupported, "the drafter " + std::string(traits().name) +
                                          " cannot say which laws its tokens come from");
  }
};

}  // namespace sapwood
