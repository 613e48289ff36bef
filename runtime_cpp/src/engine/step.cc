// One step: draft a tree, verify it in one pass, commit what the target agreed with.
#include <algorithm>
#include <string>

#include "draft/drafters.h"
#include "engine/session_state.h"
#include "memory/pooled_floats.h"
#include "verify/chance.h"
#include "verify/verify_sampled.h"

namespace sapwood {
namespace {

constexpr double kOverheadMemory = 0.1;  // weight of the latest step in the average

}  // namespace

int Session::State::tokens_left() const {
  return std::min(generate.max_new_tokens - stats.emitted_tokens,
                  context_length - static_cast<int>(tokens.size()));
}

Result<std::span<const int32_t>> Session::State::step() {
  if (reason == StopReason::kNone && !running) {
    return Status(Code::kInvalidArgument,
                  "there is nothing to continue; call start() with a prompt first");
  }
  if (reason == StopReason::kNone && cancelled.load(std::memory_order_relaxed)) {
    reason = StopReason::kCancelled;
  }
  if (reason != StopReason::kNone) return std::span<const int32_t>();

  const Clock::time_point begin = Clock::now();
  trace.begin(static_cast<int>(stats.steps) + 1, generate.mode);
  stats.draft_way = next_way();
  // A drafter on a thread of its own records itself: here it is waited for.
  trace.enter(on_thread() ? TraceName::kSyncDraftToTarget : TraceName::kDraftGenerate);
  running = false;  // until the step has gone through
  double draft_seconds = 0;
  double pass_seconds = 0;
  const Status done = go_through(draft_seconds, pass_seconds);
  trace.drop();  // what an error ended
  let_draft_rest();
  SAPWOOD_TRY(done);
  running = true;
  if (reason != StopReason::kNone) share_text();

  const double seconds = seconds_since(begin);
  stats.decode_seconds += seconds;
  const int emitted = static_cast<int>(verdict.emitted.size());
  stats.recent.observe(emitted, seconds);
  stats.tree_nodes = tree.size();
  stats.tree_depth = tree.max_depth();
  if (stats.strategy.strategy == strategies.choice().strategy) {
    strategies.observe(tree.size(), emitted, seconds);
  } else {
    strategies.interrupted();
  }
  if (has_ways()) way_choice.observe(emitted, seconds);
  // A drafter whose passes cost something weighs them itself.
  const double weighed = drafter->traits().pass_milliseconds > 0 ? draft_seconds : 0;
  if (learn_costs) {
    overhead_ms += ((seconds - pass_seconds - weighed) * 1e3 - overhead_ms) * kOverheadMemory;
  }
  return std::span<const int32_t>(verdict.emitted);
}

DraftWay Session::State::next_way() const {
  if (!has_ways() || double_buffer == DoubleBuffer::kOff) {
    return has_ways() ? DraftWay::kBeside : DraftWay::kInTurns;
  }
  return double_buffer == DoubleBuffer::kOn ? DraftWay::kAhead : way_choice.way();
}

void Session::State::drop_draft() {
  tree.clear();
  if (sampled != nullptr) sampled->proposals.clear();
}

void Session::State::report_misses() {
  if (watchdog.missed() > stats.missed_deadlines) {
    trace.value(TraceName::kDeadlineMissed, static_cast<double>(watchdog.missed()));
  }
  stats.missed_deadlines = watchdog.missed();
  stats.watchdog = watchdog.report();
}

double Session::State::seconds_for_draft() const {
  const double limit = watchdog.limit(curve.milliseconds(1 + max_nodes));
  if (stats.steps > 0) return limit;
  return limit + 10 * stats.prefill_seconds +
         watchdog.limit(curve.milliseconds(1) * static_cast<double>(tokens.size()));
}

void Session::State::draft() {
  drop_draft();
  if (draws_drafts()) ++drawn_steps;
  if (!drafts()) {
    if (generate.mode != Mode::kPlain) show_strategy({Strategy::kPlain, Reason::kDeadline});
    return;
  }
  if (has_ways() && !on_thread()) draft_thread->learn_now();
  DraftRequest request;
  const bool wanted = plan_draft(request);
  if (!wanted && !on_thread()) return;
  const double limit = seconds_for_draft();
  const Clock::time_point begin = Clock::now();
  request.deadline = Watchdog::after(limit);
  Status proposed;
  if (on_thread()) {
    // Twice, so that a drafter that looks at the clock has time to do so.
    const Deadline deadline = Watchdog::after(2 * limit);
    asked_thread = true;
    if (draft_thread->draft(wanted ? &request : nullptr, controller,
                            stats.draft_way == DraftWay::kAhead, deadline, tree,
                            proposed) != Wait::kReached) {
      return leave_drafter_behind(2 * limit);
    }
    count_ahead(draft_thread->saved_milliseconds(), draft_thread->came_of_ahead());
    if (proposed.ok() && wanted) proposed = check_draft(request);
  } else {
    proposed = propose(request);
    count_ahead(drafter->saved_milliseconds(), drafter->came_of_ahead());
  }
  const double seconds = seconds_since(begin);
  if (!proposed.ok()) {
    drop_draft();
    drafter_usable = false;  // what it knows of the text may be anything, until the next start()
    watchdog.draft_failed(drafter_name, proposed.message());
    report_misses();
  } else if (seconds > limit) {
    watchdog.draft_was_late(drafter_name, seconds, limit);
    report_misses();
  }
}

void Session::State::count_ahead(double saved_milliseconds, Ahead ahead) {
  stats.hidden_draft_seconds += saved_milliseconds / 1e3;
  stats.kept_ahead += ahead == Ahead::kKept ? 1 : 0;
  stats.discarded_ahead += ahead == Ahead::kDiscarded ? 1 : 0;
}

// It may be anywhere, in anything that it was given: nothing of that is used again.
void Session::State::leave_drafter_behind(double seconds) {
  drop_draft();
  watchdog.draft_hangs(drafter_name, seconds);
  report_misses();
  asked_thread = false;
  draft_thread.reset();
  drafter = make_drafter("none").value();
  logits = pooled_floats(static_cast<size_t>(max_nodes + 1) * sampler.vocabulary_size());
}

void Session::State::let_draft_rest() {
  if (!asked_thread) return;
  const double limit = 2 * seconds_for_draft();
  const Clock::time_point begin = Clock::now();
  if (draft_thread->rest(Watchdog::after(limit)) != Wait::kReached) {
    return leave_drafter_behind(limit);
  }
  asked_thread = false;
  if (reason != StopReason::kNone && drafts()) draft_thread->learn_now();
  stats.draft_seconds += seconds_since(begin);
}

Status Session::State::go_through(double& draft_seconds, double& pass_seconds) {
  const Clock::time_point begin = Clock::now();
  draft();
  draft_seconds = seconds_since(begin);
  stats.draft_seconds += draft_seconds;
  trace.next(TraceName::kSyncDraftToTarget, tree.size());
  SAPWOOD_TRY(take_slots_and_verify(pass_seconds));
  const std::span<const int32_t> slots(step_slots.data(), static_cast<size_t>(tree.size()) + 1);
  const size_t text_before = tokens.size();
  SAPWOOD_TRY(commit(slots));
  const int accepted = static_cast<int>(verdict.accepted.size());
  trace.next(TraceName::kLearn, static_cast<int>(slots.size()), accepted);
  const Clock::time_point committed_at = Clock::now();
  if (drafts()) learn(text_before);
  const double learn_seconds = seconds_since(committed_at);
  trace.leave(static_cast<int>(slots.size()));
  if (trace.on()) trace_counters();
  stats.draft_seconds += learn_seconds;
  // Learning looks at every row, so a row costs it too.
  pass_seconds += learn_seconds;
  if (learn_costs) curve.observe(static_cast<int>(slots.size()), pass_seconds * 1e3);
  watchdog.step_done();
  reason = reason_after_step();
  return Status::okay();
}

Status Session::State::propose(const DraftRequest& request) {
  if (draws_drafts()) {
    CounterChance chance(generate.sampling.seed, RandomStream::kDraft, drawn_steps);
    SAPWOOD_TRY(drafter->propose_sampled(request, chance, tree, sampled->proposals));
  } else {
    SAPWOOD_TRY(drafter->propose(request, tree));
  }
  SAPWOOD_TRY(check_draft(request));
  return judges_draws()
             ? check_fit(generate.verifier, TreeOrigin::kSampled, tree, &sampled->proposals)
             : Status::okay();
}

Status Session::State::check_draft(const DraftRequest& request) const {
  if (tree.size() > request.max_nodes || tree.max_depth() > request.max_depth) {
    return Status(Code::kInternal, "the drafter " + std::string(drafter->traits().name) +
                                       " grew a larger tree than it was asked for");
  }
  return Status::okay();
}

// Where the pass is given up, the step is done again over the root alone.
Status Session::State::take_slots_and_verify(double& pass_seconds) {
  for (;;) {
    const std::span<int32_t> slots(step_slots.data(), static_cast<size_t>(tree.size()) + 1);
    if (!cache->allocate(slots)) return no_slot_left("the next token");
    const Status verified = verify(slots, pass_seconds);
    if (verified.ok()) return verified;
    SAPWOOD_TRY(cache->free(slots));
    if (verified.code() != Code::kCancelled) return verified;
    if (tree.empty()) {
      return Status(Code::kInternal, "the target does not answer: " + watchdog.report());
    }
    drop_draft();
  }
}

Status Session::State::verify(std::span<const int32_t> slots, double& pass_seconds) {
  const RowBatch batch = layout.tree_rows(tokens.back(), tree, committed.slots(), slots);
  const std::span<float> rows(logits.get(), slots.size() * sampler.vocabulary_size());
  const int count = static_cast<int>(slots.size());
  const double expected_ms = curve.milliseconds(count);
  const double limit =
      count == 1 ? watchdog.limit_of_one_row(expected_ms) : watchdog.limit(expected_ms);
  const Clock::time_point begin = Clock::now();
  pass_deadline = Watchdog::after(limit);
  trace.next(TraceName::kTargetVerify, count);
  const Status passed = run(batch, rows);
  pass_seconds = seconds_since(begin);
  trace.next(passed.ok() ? TraceName::kAcceptRejectSample : TraceName::kSyncDraftToTarget, count);
  if (asked_thread) draft_thread->verified();
  if (passed.code() == Code::kCancelled) {
    watchdog.pass_was_given_up(count, limit);
    report_misses();
  } else if (passed.ok() && pass_seconds > limit) {
    watchdog.pass_was_late(count, pass_seconds, limit);
    report_misses();
  } else if (passed.ok()) {
    watchdog.passed(expected_ms, pass_seconds);
  }
  SAPWOOD_TRY(passed);
  const VerifyLimits limits{tokens_left(), generate.eos_token_ids};
  if (judges_draws()) return judge(rows, limits);
  return target_draw(tree, rows, sampler, static_cast<uint64_t>(stats.emitted_tokens), limits,
                     verdict);
}

Status Session::State::judge(std::span<const float> rows, const VerifyLimits& limits) {
  CounterChance chance(generate.sampling.seed, RandomStream::kAcceptance, drawn_steps);
  LogitLaws laws(tree, rows, sampler);
  SAPWOOD_TRY(verify_sampled(generate.verifier, {tree, sampled->proposals}, laws, chance, limits,
                             sampled->workspace, verdict));
  for (const int32_t token : verdict.emitted) sampler.push(token);
  return Status::okay();
}

// One transaction. Planned: the root and all emitted tokens but the last stay in the cache, which
// are the root's row and those of the first accepted nodes; they take the step's first slots in
// order. Slots ascend and a node is numbered after its parent, so the i-th kept row never lies
// before the i-th slot, and copying in order overwrites nothing that is still needed.
Status Session::State::commit(std::span<const int32_t> slots) {
  const size_t kept = verdict.emitted.size();
  if (kept == 0 || kept > slots.size() || kept > verdict.accepted.size() + 1) {
    return Status(Code::kInternal, "a step emitted " + std::to_string(kept) +
                                       " tokens and accepted " +
                                       std::to_string(verdict.accepted.size()));
  }
  for (size_t i = 1; i < kept; ++i)
    cache->kv().copy_slot(slots[1 + verdict.accepted[i - 1]], slots[i]);
  committed.append(slots.first(kept));
  tokens.insert(tokens.end(), verdict.emitted.begin(), verdict.emitted.end());
  SAPWOOD_TRY(cache->free(slots.subspan(kept)));

  if (committed.size() + 1 != static_cast<int>(tokens.size()) || !cache->is_whole()) {
    return Status(Code::kInternal, "after a step the cache holds " +
                                       std::to_string(committed.size()) + " tokens of a text of " +
                                       std::to_string(tokens.size()) + " and " +
                                       std::to_string(cache->taken()) + " slots in all");
  }
  stats.steps += 1;
  stats.emitted_tokens += static_cast<int>(kept);
  stats.rows_verified += static_cast<int64_t>(slots.size());
  stats.drafted_tokens += tree.size();
  stats.accepted_tokens += static_cast<int64_t>(verdict.accepted.size());
  stats.peak_kv_slots =
      std::max(stats.peak_kv_slots, committed.size() + static_cast<int>(slots.size() - kept));
  stats.peak_draft_slots = std::max(stats.peak_draft_slots, tree.size());
  return Status::okay();
}

void Session::State::learn(size_t text_before) {
  if (generate.adapt) {
    beta.observe(static_cast<int>(verdict.emitted.size()));
    stats.beta = beta.beta();
  }
  if (adapts()) {
    const int accepted = static_cast<int>(verdict.accepted.size());
    fallback.observe(tree.size(), accepted, static_cast<int>(verdict.emitted.size()));
    if (generate.mode == Mode::kChain) chain_length.observe(tree.size(), accepted);
    stats.soft_fallbacks = fallback.soft();
    stats.hard_fallbacks = fallback.hard();
  }
  const int vocabulary = sampler.vocabulary_size();
  const VerifiedRows rows{
      std::span<const int32_t>(tokens).first(text_before),
      tree,
      {logits.get(), (static_cast<size_t>(tree.size()) + 1) * vocabulary},
      vocabulary,
      verdict.emitted,
      shows_hidden_states() ? model->hidden_states() : std::span<const float>()};
  if (asked_thread) return draft_thread->learn_later(rows, logits);
  drafter->follow(verdict.emitted);
  drafter->observe(rows);
}

void Session::State::trace_counters() {
  const std::span<const int32_t> slots = committed.slots();
  int runs = slots.empty() ? 0 : 1;
  for (size_t i = 1; i < slots.size(); ++i) runs += slots[i] != slots[i - 1] + 1;
  trace.value(TraceName::kTreeSize, tree.size());
  trace.value(TraceName::kAccepted, static_cast<double>(verdict.accepted.size()));
  trace.value(TraceName::kKvSlots, cache->taken());
  trace.value(TraceName::kKvRuns, runs);
}

StopReason Session::State::reason_after_step() const {
  const std::vector<int32_t>& eos = generate.eos_token_ids;
  if (std::find(eos.begin(), eos.end(), tokens.back()) != eos.end()) return StopReason::kEos;
  if (stats.emitted_tokens >= generate.max_new_tokens) return StopReason::kLength;
  if (static_cast<int>(tokens.size()) >= context_length) return StopReason::kContext;
  return StopReason::kNone;
}

}  // namespace sapwood
