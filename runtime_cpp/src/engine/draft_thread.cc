#include "engine/draft_thread.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace sapwood {
namespace {

constexpr double kPassMemory = 0.2;  // weight of the latest pass in the average

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
      if (!wants_tree) return Status::okay();
      TraceSpan span(request.trace.get(), traced(request, 0));
      SAPWOOD_TRY(drafter->propose(request, tree));
      span.event().rows = tree.size();
      saved_ms = drafter->saved_milliseconds();
      return Status::okay();
    } catch (const std::exception& error) {  // no memory
      return Status(Code::kExhausted, error.what());
    }
  }

  // A pass that would outlast the target's, going by how long that usually takes, is not begun: it
  // would be waited for.
  void look_while_target_works(uint64_t step) {
    const Clock::time_point begin = Clock::now();
    double look = 0;
    while (look_ahead && verified.value() < step && seconds_since(begin) + look < usual_pass) {
      const Clock::time_point before = Clock::now();
      try {
        const TraceSpan span(request.trace.get(), traced(request, 1));
        if (!drafter->look_ahead(request)) return;
      } catch (const std::exception&) {
        return;
      }
      look = seconds_since(before);
    }
  }

  std::shared_ptr<Drafter> drafter;
  HostTimeline drafted, verified, sampled;
  std::optional<StepGraph> graph;
  HostTimeline asked;   // the step whose tree is wanted: the caller's pace
  HostTimeline rested;  // the step after which the thread is at rest

  // Of the target, in seconds: a running average.
  std::atomic<double> usual_pass{std::numeric_limits<double>::infinity()};

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
      if (s.graph->begin(Stage::kSampler, step - 1, kNoDeadline) != Wait::kReached) return;
      if (!s.rested.signal(step - 1).ok()) return;
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

void DraftThread::verified() {
  if (shared_->verified.value() >= step_) return;
  const double seconds = seconds_since(target_began_);
  const double usual = shared_->usual_pass;
  shared_->usual_pass = std::isinf(usual) ? seconds : usual + (seconds - usual) * kPassMemory;
  const Status signalled = shared_->graph->end(Stage::kTarget, step_);
  static_cast<void>(signalled);  // refused only where the thread was left behind
}

void DraftThread::learn_later(const VerifiedRows& rows, std::shared_ptr<const float[]> logits) {
  Shared& s = *shared_;
  s.text_before = rows.text.size();
  s.emitted.assign(rows.emitted.begin(), rows.emitted.end());
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
