#include "engine/draft_thread.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/watchdog.h"

namespace sapwood {
namespace {

constexpr double kPassMemory = 0.2;  // weight of the latest pass in the average

// The drafter has a unit to itself, and what it waits for comes soon or not before the next pass.
constexpr std::chrono::microseconds kSpins{1000};

// Drafting for the step of the request, or for one that comes so many later.
TraceEvent traced(const DraftRequest& request, int later) {
  TraceEvent event = request.traced;
  event.name = TraceName::kDraftGenerate;
  event.step += later;
  return event;
}

}  // namespace

struct DraftThread::Shared {
  explicit Shared(std::shared_ptr<Drafter> the_drafter) : drafter(std::move(the_drafter)) {
    graph.emplace(StepGraph::create(drafted, verified, sampled, 2).value());
  }

  void abandon() {
    graph->abandon();
    asked.abandon();
    rested.abandon();
  }

  void learn() {
    if (!to_learn) return;
    to_learn = false;
    drafter->follow(emitted);
    drafter->observe({std::span<const int32_t>(text).first(text_before), verified_tree,
                      std::span<const float>(logits.get(), logit_count), vocabulary, emitted,
                      hidden_states});
  }

  Status grow() {
    const Status grown = learn_and_propose();
    look_ahead = look_ahead && grown.ok();
    return grown;
  }

  Status learn_and_propose() {
    try {
      learn();
      tree.clear();
      saved_ms = 0;
      ahead = Ahead::kNone;
      if (!wants_tree) return Status::okay();
      TraceSpan span(request.trace, traced(request, 0));
      SAPWOOD_TRY(drafter->propose(request, tree));
      span.event().rows = tree.size();
      saved_ms = drafter->saved_milliseconds();
      ahead = drafter->came_of_ahead();
      return Status::okay();
    } catch (const std::exception& error) {  // no memory
      return Status(Code::kExhausted, error.what());
    }
  }

  // Of the target, over the tree that was handed over: by the cost curve, where there is one.
  double expected_ms() const {
    return request.cost == nullptr ? 1 : request.cost->milliseconds(1 + tree.size());
  }

  // Until the target is expected to have spoken, going by its pace so far: a look that is not over
  // by then is waited for.
  void look_while_target_works(uint64_t step) {
    request.deadline = target_ends();
    while (look_ahead && verified.value() < step) {
      try {
        const TraceSpan span(request.trace, traced(request, 1));
        if (!drafter->look_ahead(request)) return;
      } catch (const std::exception&) {
        return;
      }
    }
  }

  Deadline target_ends() const {
    const double seconds = expected_ms() * pace;
    return std::isinf(seconds) ? kNoDeadline : Watchdog::after(seconds);
  }

  std::shared_ptr<Drafter> drafter;
  HostTimeline drafted{0, kSpins}, verified{0, 2 * kSpins}, sampled{0, kSpins};
  std::optional<StepGraph> graph;
  HostTimeline asked{0, kSpins};   // the step whose tree is wanted: the caller's pace
  HostTimeline rested{0, kSpins};  // the step after which the thread is at rest

  // Seconds that the target takes for each millisecond it is expected to: a running average.
  std::atomic<double> pace{std::numeric_limits<double>::infinity()};

  // What is asked for: written at rest.
  DraftRequest request;
  bool wants_tree = false;
  bool look_ahead = false;
  CostCurve cost = CostCurve::assumed();
  SoftPruning controller{ControllerOptions()};
  TreeShape shape;

  // What the step before found out: written before the next one is asked for.
  bool to_learn = false;
  std::vector<int32_t> text;
  size_t text_before = 0;
  std::vector<int32_t> emitted;
  DraftTree verified_tree;
  std::shared_ptr<const float[]> logits;
  size_t logit_count = 0;
  int vocabulary = 0;
  std::vector<float> hidden_states;

  // What the thread answers: read once it was drafted.
  DraftTree tree;
  Status status;
  double saved_ms = 0;
  Ahead ahead = Ahead::kNone;
};

DraftThread::DraftThread(std::shared_ptr<Drafter> drafter)
    : shared_(std::make_shared<Shared>(std::move(drafter))),
      thread_([shared = shared_] { run(shared); }) {}

DraftThread::~DraftThread() {
  shared_->abandon();
  if (lost_) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void DraftThread::run(const std::shared_ptr<Shared>& shared) {
  Shared& s = *shared;
  const uint64_t first = s.graph->first_step();
  for (uint64_t step = first;; ++step) {
    if (s.graph->begin(Stage::kDraft, step, kNoDeadline) != Wait::kReached) return;
    if (step > first) {
      // The buffer of tree `step` is free, and the target works on the one before.
      s.look_while_target_works(step - 1);
      const Deadline ends = s.request.deadline;
      if (!s.rested.signal(step - 1).ok()) return;
      // Awake again a moment before the target is expected to have spoken.
      const Wait nap = s.verified.wait(step - 1, ends == kNoDeadline ? ends : ends - kSpins);
      if (nap == Wait::kAbandoned) return;
      if (s.graph->begin(Stage::kSampler, step - 1, kNoDeadline) != Wait::kReached) return;
    }
    if (s.asked.wait(step, kNoDeadline) != Wait::kReached) return;
    s.status = s.grow();
    if (!s.graph->end(Stage::kDraft, step).ok()) return;
  }
}

void DraftThread::start(std::span<const int32_t> text, int max_tokens, int max_rows,
                        size_t states_of_row, const TreeShape& shape) {
  Shared& s = *shared_;
  s.to_learn = false;
  s.text.reserve(static_cast<size_t>(max_tokens));
  s.text.assign(text.begin(), text.end());
  s.emitted.reserve(static_cast<size_t>(max_rows));
  s.hidden_states.reserve(static_cast<size_t>(max_rows) * states_of_row);
  s.shape = shape;
}

Wait DraftThread::left_behind(Wait outcome) {
  if (outcome == Wait::kReached) return outcome;
  lost_ = true;
  shared_->abandon();
  return Wait::kMissed;
}

Wait DraftThread::draft(const DraftRequest* ask_for, const SoftPruning& controller, bool look_ahead,
                        Deadline deadline, DraftTree& tree, Status& drafted) {
  Shared& s = *shared_;
  s.wants_tree = ask_for != nullptr;
  s.look_ahead = look_ahead && s.wants_tree;
  if (s.wants_tree) {
    s.request = *ask_for;
    s.controller = controller;
    s.request.pruning = &s.controller;
    s.request.looks_ahead = s.look_ahead;
    if (s.request.cost != nullptr) {
      s.cost = *s.request.cost;
      s.request.cost = &s.cost;
    }
    if (s.request.shape != nullptr) s.request.shape = &s.shape;
  }
  ++step_;
  if (!s.asked.signal(step_).ok()) return left_behind(Wait::kAbandoned);
  const Wait outcome = s.graph->begin(Stage::kTarget, step_, deadline);
  if (outcome != Wait::kReached) return left_behind(outcome);
  target_began_ = Clock::now();
  drafted = s.status;
  if (drafted.ok()) tree = s.tree;
  return outcome;
}

double DraftThread::saved_milliseconds() const { return shared_->saved_ms; }

Ahead DraftThread::came_of_ahead() const { return shared_->ahead; }

void DraftThread::verified() {
  if (shared_->verified.value() >= step_) return;
  const double seconds = seconds_since(target_began_);
  const double latest = seconds / shared_->expected_ms();
  const double usual = shared_->pace;
  shared_->pace = std::isinf(usual) ? latest : usual + (latest - usual) * kPassMemory;
  const Status signalled = shared_->graph->end(Stage::kTarget, step_);
  static_cast<void>(signalled);  // refused only where the thread was left behind
}

void DraftThread::learn_later(const VerifiedRows& rows, std::shared_ptr<const float[]> logits) {
  Shared& s = *shared_;
  s.text_before = rows.text.size();
  s.emitted.assign(rows.emitted.begin(), rows.emitted.end());
  // Steps that drafted without the thread have come between.
  const std::span<const int32_t> missed = rows.text.subspan(s.text.size());
  s.text.insert(s.text.end(), missed.begin(), missed.end());
  s.text.insert(s.text.end(), rows.emitted.begin(), rows.emitted.end());
  s.verified_tree = rows.tree;
  s.logits = std::move(logits);
  s.logit_count = rows.logits.size();
  s.vocabulary = rows.vocabulary;
  s.hidden_states.assign(rows.hidden_states.begin(), rows.hidden_states.end());
  s.to_learn = true;
}

void DraftThread::learn_now() { shared_->learn(); }

Wait DraftThread::rest(Deadline deadline) {
  verified();
  const Status signalled = shared_->graph->end(Stage::kSampler, step_);
  if (!signalled.ok()) return left_behind(Wait::kAbandoned);
  return left_behind(shared_->rested.wait(step_, deadline));
}

}  // namespace sapwood
