#include "engine/session.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/session_state.h"

namespace sapwood {
namespace {

// What a candidate of each rank is assumed to be worth when a fixed tree is laid out: about
// halving, as Medusa's and EAGLE's published trees suggest.
constexpr std::array<float, 8> kFixedByRank = {0.5f, 0.2f, 0.1f, 0.06f, 0.04f, 0.03f, 0.02f, 0.01f};

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "none";
    case StopReason::kEos:
      return "eos";
    case StopReason::kLength:
      return "length";
    case StopReason::kContext:
      return "context";
    case StopReason::kStopped:
      return "stopped";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

double SessionStats::mean_accepted_length() const {
  return steps > 0 ? static_cast<double>(emitted_tokens) / static_cast<double>(steps) : 0;
}

double SessionStats::mean_draft_slots() const {
  return steps > 0 ? static_cast<double>(drafted_tokens) / static_cast<double>(steps) : 0;
}

double SessionStats::hidden_draft_share() const {
  const double all = draft_seconds + hidden_draft_seconds;
  return all > 0 ? hidden_draft_seconds / all : 0;
}

double SessionStats::tokens_per_second() const {
  return decode_seconds > 0 ? emitted_tokens / decode_seconds : 0;
}

double SessionStats::prompt_tokens_per_second() const {
  const int computed = prompt_tokens - reused_prompt_tokens - 1;
  return prefill_seconds > 0 && computed > 0 ? computed / prefill_seconds : 0;
}

Session::State::~State() { share_text(); }

Status Session::State::check(std::span<const int32_t> prompt,
                             const GenerateOptions& options) const {
  if (prompt.empty()) return invalid("the prompt is empty; give at least one token");
  if (prompt.size() > static_cast<size_t>(context_length)) {
    return invalid("the prompt has " + std::to_string(prompt.size()) +
                   " tokens and the context holds " + std::to_string(context_length) +
                   "; shorten the prompt or choose a longer context");
  }
  const int vocabulary = model->spec().vocabulary_size;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] < 0 || prompt[i] >= vocabulary) {
      return invalid("token " + std::to_string(i) + " of the prompt is " +
                     std::to_string(prompt[i]) + ", outside the vocabulary of " +
                     std::to_string(vocabulary));
    }
  }
  if (options.max_new_tokens < 0) {
    return invalid("max-new-tokens is " + std::to_string(options.max_new_tokens) +
                   "; it must be 0 or above");
  }
  if (options.chain_length < 0 || options.fixed_nodes < 0) {
    return invalid("a chain and a fixed tree must have 0 or more nodes");
  }
  if (options.verifier != Verifier::kTargetDraw && options.mode != Mode::kPlain) {
    const std::string name(verifier_name(options.verifier));
    const DrafterTraits& traits = drafter->traits();
    if (!traits.gives_proposals) {
      return invalid("the verifier " + name + " judges drawn drafts and the drafter " +
                     std::string(traits.name) +
                     " cannot say which laws its tokens come from; use target_draw");
    }
    if (options.verifier == Verifier::kBlock && options.mode == Mode::kFixed) {
      return invalid(
          "the verifier block judges chains and the mode fixed grows trees; use traversal or "
          "rejection, or the mode chain or dynamic");
    }
  }
  SAPWOOD_TRY(options.controller.check());
  SAPWOOD_TRY(options.strategy.check());
  return options.sampling.check();
}

Status Session::State::start(std::span<const int32_t> prompt, const GenerateOptions& options) {
  SAPWOOD_TRY(check(prompt, options));
  running = false;
  let_draft_rest();  // where an exception ended a step
  cancelled.store(false, std::memory_order_relaxed);
  generate = options;
  watchdog.start(options.mode);
  drafter_usable = true;
  reason = StopReason::kNone;
  tree.clear();

  if (options.mode != Mode::kPlain) {
    // A draft that is drawn must not know the target's luck; one that is ranked may.
    drafter->foresee(draws_drafts()
                         ? TargetDraws()
                         : TargetDraws{options.sampling.temperature, options.sampling.seed});
    SAPWOOD_TRY(drafter->start(prompt, context_length));
  }
  share_text();
  // The last token of the prompt is never taken from the cache: it is the first step's root.
  committed.begin(prompt.first(prompt.size() - 1));
  // Hidden states are not in the cache: where the drafter lacks some, they are computed again.
  if (shows_hidden_states()) committed.truncate(drafter->hidden_states_taken());
  if (!share_prefixes) cache->forget();
  tokens.assign(prompt.begin(), prompt.end());

  const std::optional<float> celsius = stats.celsius;
  stats = {};
  stats.celsius = celsius;
  stats.mode = options.mode;
  show_governor();
  stats.verifier = options.verifier;
  stats.beta = static_cast<double>(options.controller.beta_base);
  stats.prompt_tokens = static_cast<int>(prompt.size());
  stats.reused_prompt_tokens = committed.size();
  stats.tuned_costs = !measured_costs.empty();
  report_misses();

  trace.begin(0, options.mode);
  const Clock::time_point begin = Clock::now();
  const Status filled = prefill();
  stats.prefill_seconds = seconds_since(begin);
  stats.peak_kv_slots = committed.size();
  if (!filled.ok()) {
    if (filled.code() == Code::kCancelled) reason = StopReason::kCancelled;
    if (filled.code() == Code::kExhausted) {
      // Those who have too much of the cache need what there is to go on.
      share_text();
      committed.truncate(0);
    }
    return filled;
  }
  controller = SoftPruning(options.controller);
  beta = BetaTuner(stats.beta);
  if (options.mode != Mode::kPlain && draws_drafts() && sampled == nullptr) {
    sampled = std::make_unique<SampledVerification>(sampler.vocabulary_size());
  }
  strategies.start(options.mode, options.strategy);
  fallback.start();
  chain_length.start(options.chain_length, max_nodes);
  if (options.mode == Mode::kFixed) {
    shape = TreeShape::likeliest(kFixedByRank, std::min(options.fixed_nodes, max_nodes));
  }
  if (!measured_costs.empty()) {
    const int room = context_length - static_cast<int>(tokens.size());
    const int middle = static_cast<int>(tokens.size()) + std::min(options.max_new_tokens, room) / 2;
    curve = measured_costs.at(middle);
  }
  SAPWOOD_TRY(sampler.start(options.sampling, tokens));
  if (draft_thread != nullptr) {
    const size_t states =
        drafter->traits().hidden_layers.size() * static_cast<size_t>(model->spec().hidden_size);
    draft_thread->start(tokens, context_length, max_nodes + 1, states, shape);
  }
  running = true;
  if (generate.max_new_tokens == 0) {
    reason = StopReason::kLength;
  } else if (tokens_left() == 0) {
    reason = StopReason::kContext;
  }
  return Status::okay();
}

// Computes the tokens of the prompt that are not in the cache, all but the last.
Status Session::State::prefill() {
  const size_t wanted = tokens.size() - 1;
  while (static_cast<size_t>(committed.size()) < wanted) {
    if (cancelled.load(std::memory_order_relaxed)) {
      return Status(Code::kCancelled, "stopped while reading the prompt");
    }
    const size_t done = static_cast<size_t>(committed.size());
    const size_t rows = std::min<size_t>(wanted - done, model->max_rows());
    const std::span<int32_t> slots(step_slots.data(), rows);
    if (!cache->allocate(slots)) return no_slot_left("the prompt");
    const RowBatch batch = layout.text_rows(std::span<const int32_t>(tokens).subspan(done, rows),
                                            committed.slots(), slots);
    trace.enter(TraceName::kPrefill);
    const Status passed = run(batch, {});
    trace.leave(static_cast<int>(rows));
    if (!passed.ok()) {
      SAPWOOD_TRY(cache->free(slots));
      return passed;
    }
    committed.append(slots);
    if (shows_hidden_states()) {
      SAPWOOD_TRY(drafter->read_prompt(static_cast<int>(done), model->hidden_states()));
    }
  }
  share_text();
  return Status::okay();
}

// Prefixes that nobody holds have given way already.
Status Session::State::no_slot_left(const char* whose) const {
  return Status(Code::kExhausted,
                std::string("no KV slot is left for ") + whose + ": of " +
                    std::to_string(cache->slots()) + " this text holds " +
                    std::to_string(committed.size()) +
                    " and other sessions the rest; close one, or give the cache more kv_slots");
}

// One pass of the target, with the hidden states that the drafter reads: another session over the
// same model may have asked for others.
Status Session::State::run(const RowBatch& batch, std::span<float> rows) {
  if (shows_hidden_states()) {
    const std::span<const int> wanted = drafter->traits().hidden_layers;
    const std::span<const int> kept = model->kept_layers();
    if (!std::equal(wanted.begin(), wanted.end(), kept.begin(), kept.end())) {
      SAPWOOD_TRY(model->keep_hidden_states(wanted));
    }
  }
  model->set_deadline(rows.empty() ? kNoDeadline : pass_deadline);
  const Status passed = model->forward(batch, cache->kv(), rows);
  model->set_deadline(kNoDeadline);  // others may run it
  return passed;
}

Status Session::State::finish_at(int emitted) {
  if (tokens.empty()) return invalid("there is no answer to end; call start() first");
  if (emitted < 0 || emitted > stats.emitted_tokens) {
    return invalid("the answer cannot end after " + std::to_string(emitted) + " tokens; it has " +
                   std::to_string(stats.emitted_tokens));
  }
  tokens.resize(static_cast<size_t>(stats.prompt_tokens) + emitted);
  committed.truncate(static_cast<int>(tokens.size()) - 1);
  stats.emitted_tokens = emitted;
  reason = StopReason::kStopped;
  return Status::okay();
}

void Session::State::observe(const DeviceReadings& readings, std::optional<double> seconds) {
  if (readings.celsius) {
    trace.value(TraceName::kTemperature, static_cast<double>(*readings.celsius));
    stats.celsius = readings.celsius;
  }
  if (!(seconds ? governor.observe(*seconds, readings) : governor.observe_now(readings))) return;
  if (stats.heat != governor.heat()) {
    trace.value(TraceName::kHeatChange, static_cast<int>(governor.heat()), governor.heat_reason());
  }
  if (stats.memory_pressure != governor.memory_pressure()) {
    trace.value(TraceName::kMemoryChange, static_cast<int>(governor.memory_pressure()),
                governor.memory_reason());
  }
  show_governor();
}

void Session::State::show_governor() {
  stats.heat = governor.heat();
  stats.heat_reason = governor.heat_reason();
  stats.memory_pressure = governor.memory_pressure();
  stats.memory_reason = governor.memory_reason();
}

void Session::State::share_text() {
  committed.share(std::span<const int32_t>(tokens).first(static_cast<size_t>(committed.size())));
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Status Session::start(std::span<const int32_t> prompt, const GenerateOptions& options) {
  return state_->start(prompt, options);
}
Result<std::span<const int32_t>> Session::step() { return state_->step(); }
Status Session::finish_at(int emitted) { return state_->finish_at(emitted); }
void Session::observe(const DeviceReadings& readings, std::optional<double> seconds) {
  state_->observe(readings, seconds);
}

void Session::force(std::optional<Strategy> strategy) { state_->forced = strategy; }

void Session::record_into(std::shared_ptr<TraceRing> ring) {
  state_->trace.record_into(std::move(ring));
}

void Session::cancel() { state_->cancelled.store(true, std::memory_order_relaxed); }

StopReason Session::stop_reason() const { return state_->reason; }
const SessionStats& Session::stats() const { return state_->stats; }
std::span<const int32_t> Session::tokens() const { return state_->tokens; }
int Session::context_length() const { return state_->context_length; }
size_t Session::kv_bytes_per_token() const { return state_->cache->kv().bytes_per_slot(); }
int Session::kv_slots_taken() const { return state_->cache->taken(); }
const Model& Session::model() const { return *state_->model; }
const CostCurve& Session::cost_curve() const { return state_->curve; }
const DraftTree& Session::last_tree() const { return state_->tree; }
const std::shared_ptr<PrefixCache>& Session::cache() const { return state_->cache; }

}  // namespace sapwood
