// One conversation with a model: a KV cache, a drafter and the step that makes tokens.
//
// Pull-based: the caller asks for steps and gets the tokens each one emitted.
//
//   auto session = Session::create(model, {.context_length = 2048});
//   SAPWOOD_TRY(session.value()->start(prompt, {.mode = Mode::kDynamic, .max_new_tokens = 128}));
//   for (;;) {
//     Result<std::span<const int32_t>> tokens = session.value()->step();
//     if (!tokens.ok()) return tokens.status();
//     if (tokens.value().empty()) break;          // session.value()->stop_reason() says why
//     print(tokens.value());
//   }
//
// With the verifier target_draw, and whenever decoding is greedy, the text depends on the prompt,
// the sampling options and the seed, never on the mode, the drafter or the budget. The verifiers of
// sampled drafts keep the law of the text, not the text: which of its draws comes at a seed depends
// on what was drafted, and so on the mode, the drafter and what it has learnt. Not thread-safe,
// except for cancel().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "draft/drafter.h"
#include "engine/adaptation.h"
#include "engine/draft_way.h"
#include "engine/governor.h"
#include "engine/mode.h"
#include "engine/recent_steps.h"
#include "engine/strategy.h"
#include "engine/watchdog.h"
#include "memory/prefix_cache.h"
#include "model/model.h"
#include "trace/system_trace.h"
#include "trace/trace_ring.h"
#include "tree/budget.h"
#include "tree/controller.h"
#include "tree/cost_grid.h"
#include "tree/draft_tree.h"
#include "verify/sampling.h"
#include "verify/verifier.h"

namespace sapwood {

struct SessionOptions {
  int context_length = 2048;  // prompt and emitted tokens together
  int max_tree_nodes = 31;    // the most a step verifies beside the root; also KV slots beyond
                              // the context. Lowered to what one pass of the model takes.
  KvFormat kv = KvFormat::kFloat16;  // of the cache. kInt8: half the memory and faster attention,
                                     // another rounding; the model's host must take it
  // What the cache has room for beyond the present text stays filled with earlier ones, prompts and
  // answers, the longest unused going first: who begins like one of them computes only the rest,
  // and says the same.
  bool share_prefixes = true;
  int kv_slots = 0;  // of the cache, one a token; 0: just what the context and a step's tree need
  // A cache that several sessions over one model share, each to be used while no other is; null:
  // one of its own, with `kv` and `kv_slots`. A session may then find too few slots left, and says
  // so. make_cache() makes one.
  std::shared_ptr<PrefixCache> cache;
  std::unique_ptr<Drafter> drafter;  // null: make_drafter("mix"). Lives as long as the session, so
                                     // what it learnt in one answer helps the next.
  CostCurve cost_curve = CostCurve::assumed();  // where measuring starts
  // Measured on this device for this model (sapwood tune): every answer starts from it instead, at
  // the context it will have.
  CostGrid measured_costs;
  bool learn_costs = true;   // refine the curve by every step; off, equal runs draft equal trees
  WatchdogOptions watchdog;  // deadlines of the step's stages
  // A drafter that runs a network does so on a thread of its own; the network must have threads of
  // its own too (NativeOptions::team). One that hangs can then be left behind, and it may look
  // ahead while the target verifies. Drafts that are drawn grow on the session's thread all the
  // same, and so do others in the steps for which kMeasured has found that faster.
  bool draft_thread = false;
  DoubleBuffer double_buffer = DoubleBuffer::kMeasured;  // with draft_thread
  // Where events go too while somebody records there; null: nowhere.
  std::shared_ptr<SystemTrace> system_trace = sapwood::system_trace();
};

struct GenerateOptions {
  Mode mode = Mode::kDynamic;
  SamplingOptions sampling;
  int max_new_tokens = 128;            // emitted tokens only; drafts do not count
  std::vector<int32_t> eos_token_ids;  // emitted, and nothing after
  int chain_length = 4;                // kChain
  int fixed_nodes = 15;                // kFixed
  // kRejection, kTraversal and (chains: kChain, kDynamic) kBlock judge drafts that are drawn, which
  // the drafter must be able to do. Greedy decoding has nothing to draw: there all of them are
  // target_draw.
  Verifier verifier = Verifier::kTargetDraw;
  ControllerOptions controller;  // what stays of a drafter's candidates, where it has laws of them
  bool adapt = false;  // kChain, kFixed: fall back where guesses fail, and choose the length of a
                       // chain by `length_rule`; the controller's beta follows the length of steps
  LengthRule length_rule = LengthRule::kWindow;
  StrategyOptions strategy;  // when something else than `mode` is tried: by default never
};

enum class StopReason {
  kNone,       // still going, or never started
  kEos,        // an end-of-sequence token was emitted
  kLength,     // max_new_tokens were emitted
  kContext,    // prompt and emitted tokens fill the context
  kStopped,    // the caller cut the text: finish_at()
  kCancelled,  // cancel()
};
std::string_view stop_reason_name(StopReason reason);  // "none", "eos", "length", ...

struct SessionStats {
  Mode mode = Mode::kPlain;
  Verifier verifier = Verifier::kTargetDraw;
  int prompt_tokens = 0;
  int reused_prompt_tokens = 0;  // of these, already in the cache
  int emitted_tokens = 0;
  int64_t steps = 0;          // passes that emitted something
  int64_t rows_verified = 0;  // roots and nodes, over all steps
  int64_t drafted_tokens = 0;
  int64_t accepted_tokens = 0;  // drafted ones that were emitted
  int64_t soft_fallbacks = 0;   // steps that drafted a chain because the one before failed
  int64_t hard_fallbacks = 0;   // cool-downs without drafting
  int peak_kv_slots = 0;        // text and draft
  int peak_draft_slots = 0;     // the most a step held beyond the text: its draft's nodes
  double beta = 0;              // the controller's, by now
  double prefill_seconds = 0;   // start(): all prompt tokens but the last, which is the first root
  double decode_seconds = 0;    // step()
  double draft_seconds = 0;     // part of decode_seconds: growing trees, learning from what came;
                                // with a thread of its own, waiting for that
  double hidden_draft_seconds = 0;  // not part of it: what the passes that were run ahead, beside
                                    // the target's, would have cost the trees they became part of
  DraftWay draft_way = DraftWay::kInTurns;  // of the latest step
  int64_t kept_ahead = 0;        // steps whose text went where the drafter had looked ahead,
  int64_t discarded_ahead = 0;   // and where it went elsewhere
  bool tuned_costs = false;      // the budget started from measurements of this device
  int64_t missed_deadlines = 0;  // of stages, and drafters that failed
  Heat heat = Heat::kCool;       // the governor's states by now, and why each is what it is
  Reason heat_reason = Reason::kNone;
  MemoryPressure memory_pressure = MemoryPressure::kNone;
  Reason memory_reason = Reason::kNone;
  std::optional<float> celsius;  // the latest reading
  // What the latest step drafted in place of what was asked for, since when and why.
  StrategyChoice strategy;
  int64_t strategy_changes = 0;
  RecentSteps recent;
  int tree_nodes = 0;  // of the latest step
  int tree_depth = 0;
  std::string watchdog;  // the latest of these in words, and what was done; empty: none

  double mean_accepted_length() const;  // emitted tokens a step; 0 before the first
  double mean_draft_slots() const;      // held beyond the text, a step
  double hidden_draft_share() const;    // of all time for drafting that was of use
  double tokens_per_second() const;
  double prompt_tokens_per_second() const;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Model> model,
                                                 SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A cache for sessions over `model`, options.kv and kv_slots as above.
  static Result<std::shared_ptr<PrefixCache>> make_cache(const Model& model,
                                                         const SessionOptions& options);

  // Takes a prompt, the whole of it including any beginning-of-sequence token, and fills the cache
  // with it, in chunks of what one pass of the model takes. The longest prefix that the cache
  // already holds is not computed again. Refused, with the session as it was: an empty
  // prompt, one longer than the context, a token outside the vocabulary, an option out of range.
  Status start(std::span<const int32_t> prompt, const GenerateOptions& options);

  // One verify step. The tokens it emitted, valid until the next call; empty once the answer has
  // ended. After an error the session holds what was committed before the step; start() goes on.
  // A draft that fails, or a stage that misses its deadline, is no error: the step goes on without,
  // and stats().watchdog says so.
  Result<std::span<const int32_t>> step();

  // Ends the answer after its first `emitted` tokens (0 .. stats().emitted_tokens), as if it had
  // stopped there: for a stop string that was found in the middle of a step's tokens.
  Status finish_at(int emitted);

  // From any thread: the next step(), or the next chunk of a running start(), ends with kCancelled.
  void cancel();

  // What sensors and the platform say of the device, now. From the next step on speculation is what
  // the governor makes of it (engine/governor.h); the text stays the same. seconds: when, which
  // does not go back; none: now, by Clock.
  void observe(const DeviceReadings& readings, std::optional<double> seconds = {});

  // From the next step on it drafts so, as far as device and watchdog allow; nothing: as it finds
  // best. For comparing strategies.
  void force(std::optional<Strategy> strategy);

  // Events go into this ring from the next step or start() on; null: into none.
  void record_into(std::shared_ptr<TraceRing> ring);

  StopReason stop_reason() const;
  const SessionStats& stats() const;
  std::span<const int32_t> tokens() const;  // prompt and emitted
  int context_length() const;
  size_t kv_bytes_per_token() const;  // of the cache, all layers
  int kv_slots_taken() const;         // between steps: one for each token of the text but the last,
                                      // and those of earlier texts that are kept
  const Model& model() const;
  const CostCurve& cost_curve() const;
  const DraftTree& last_tree() const;                 // of the latest step, for showing
  const std::shared_ptr<PrefixCache>& cache() const;  // which another session may share

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sapwood
