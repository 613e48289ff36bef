// Inside a Session: what it holds (session_create.cc), and the parts of start() (session.cc) and
// step() (step.cc).
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/adaptation.h"
#include "engine/draft_thread.h"
#include "engine/session.h"
#include "engine/step_trace.h"
#include "engine/watchdog.h"
#include "memory/prefix_cache.h"
#include "tree/proposals.h"
#include "tree/pruning.h"
#include "tree/row_layout.h"
#include "verify/target_draw.h"
#include "verify/workspace.h"

namespace sapwood {

inline Status invalid(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}

// What drawing and judging a sampled tree needs beside the rest.
struct SampledVerification {
  explicit SampledVerification(int vocabulary) : workspace(vocabulary) {}
  Proposals proposals;
  VerifyWorkspace workspace;
};

struct Session::State {
  State(std::shared_ptr<Model> the_model, SessionOptions options);
  ~State();

  Status check(std::span<const int32_t> prompt, const GenerateOptions& generate) const;
  Status start(std::span<const int32_t> prompt, const GenerateOptions& generate);
  Status prefill();
  Status run(const RowBatch& batch, std::span<float> rows);
  Result<std::span<const int32_t>> step();
  Status go_through(double& draft_seconds, double& pass_seconds);
  Status finish_at(int emitted);
  void observe(const DeviceReadings& readings, std::optional<double> seconds);
  void show_governor();  // in the statistics

  bool adapts() const {
    return generate.adapt && (generate.mode == Mode::kChain || generate.mode == Mode::kFixed);
  }

  bool judges_draws() const {  // with another verifier than target_draw
    return generate.verifier != Verifier::kTargetDraw && generate.mode != Mode::kPlain &&
           !generate.sampling.greedy();
  }
  bool shows_hidden_states() const {  // to the drafter
    return generate.mode != Mode::kPlain && !drafter->traits().hidden_layers.empty();
  }
  bool draws_drafts() const { return judges_draws() || !drafter->traits().deterministic; }

  // Of the step's draft, by the watchdog: an answer's first one may have the prompt to read.
  double seconds_for_draft() const;
  bool drafts() const {  // in this answer, if only what it learns
    return generate.mode != Mode::kPlain && drafter_usable;
  }
  void report_misses();
  bool has_ways() const { return draft_thread != nullptr && drafts() && !draws_drafts(); }
  bool on_thread() const { return has_ways() && stats.draft_way != DraftWay::kInTurns; }
  DraftWay next_way() const;
  void leave_drafter_behind(double seconds);

  // The parts of a step, in this order.
  void draft();                            // a tree, or none
  bool plan_draft(DraftRequest& request);  // whether there is to be one
  StrategyChoice choose_strategy() const;
  void show_strategy(StrategyChoice choice);
  Status propose(const DraftRequest& request);
  void count_ahead(double saved_milliseconds, Ahead ahead);
  Status check_draft(const DraftRequest& request) const;
  void drop_draft();
  Status take_slots_and_verify(double& pass_seconds);  // into step_slots, one for each row
  Status verify(std::span<const int32_t> slots, double& pass_seconds);
  Status judge(std::span<const float> rows, const VerifyLimits& limits);
  Status commit(std::span<const int32_t> slots);
  void learn(size_t text_before);  // drafter and adaptation, from what the step found out
  void let_draft_rest();           // the drafter's thread
  StopReason reason_after_step() const;
  void trace_counters();

  Status no_slot_left(const char* whose) const;
  void share_text();        // what is committed of it, with texts to come
  int tokens_left() const;  // how many more tokens this answer may have

  std::shared_ptr<Model> model;
  int context_length;
  int max_nodes;
  std::shared_ptr<Drafter> drafter;           // its thread's too
  std::unique_ptr<DraftThread> draft_thread;  // null: it drafts on this one, always
  const std::string drafter_name;
  const DoubleBuffer double_buffer;
  DraftWayChoice way_choice;
  bool asked_thread = false;  // in this step
  StepTrace trace;
  Governor governor;
  CostCurve curve;
  const CostGrid measured_costs;
  const bool learn_costs;
  double overhead_ms = 0;  // of a step, beside the pass; a running average

  const std::shared_ptr<PrefixCache> cache;
  const bool share_prefixes;
  Sampler sampler;
  RowLayout layout;
  DraftTree tree;
  Verdict verdict;
  std::shared_ptr<float[]> logits;  // [1 + max_nodes][vocabulary]; the drafter's thread reads them
  std::vector<int32_t> step_slots;  // room for the rows of a pass

  // `tokens` is the text. All of it but the last token is in the cache, in committed.slots(). The
  // last token is the root of the next step.
  std::vector<int32_t> tokens;
  PrefixSlots committed;

  GenerateOptions generate;
  TreeShape shape;
  SoftPruning controller{ControllerOptions()};
  StrategySwitch strategies;
  std::optional<Strategy> forced;
  Fallback fallback;  // these three where generate.adapt says so
  ChainLength chain_length;
  BetaTuner beta{ControllerOptions().beta_base};
  std::unique_ptr<SampledVerification> sampled;  // made when an answer first needs it
  // Steps of all answers that drew a draft. Each has random numbers of its own: if two answers with
  // one seed shared them, what the drafter learnt from the first would know the second's luck, and
  // the second's law would be another.
  uint64_t drawn_steps = 0;
  Watchdog watchdog;
  Deadline pass_deadline = kNoDeadline;  // of the pass that verifies
  bool drafter_usable = true;            // it did not fail since start()
  bool running = false;                  // start() succeeded and no step failed since
  StopReason reason = StopReason::kNone;
  SessionStats stats;
  std::atomic<bool> cancelled{false};
};

}  // namespace sapwood
