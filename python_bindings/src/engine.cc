// Session: prompts in, tokens out.

#include "bindings.h"
#include "draft/drafters.h"
#include "engine/session.h"

namespace sapwood::python {
namespace {

Mode mode_or_raise(std::string_view name) {
  const std::optional<Mode> mode = parse_mode(name);
  if (!mode) {
    raise_invalid("mode must be plain, chain, fixed or dynamic, not \"" + std::string(name) + "\"");
  }
  return *mode;
}

Verifier verifier_or_raise(std::string_view name) {
  const std::optional<Verifier> verifier = parse_verifier(name);
  if (!verifier) {
    raise_invalid("verifier must be target_draw, rejection, block or traversal, not \"" +
                  std::string(name) + "\"");
  }
  return *verifier;
}

DoubleBuffer double_buffer_or_raise(std::string_view name) {
  const std::optional<DoubleBuffer> parsed = parse_double_buffer(name);
  if (!parsed) {
    raise_invalid("double_buffer must be measured, on or off, not \"" + std::string(name) + "\"");
  }
  return *parsed;
}

std::optional<Strategy> strategy_or_raise(std::optional<std::string_view> name) {
  if (!name) return std::nullopt;
  std::string known;
  for (int i = 0; i < kStrategies; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    if (*name == strategy_name(strategy)) return strategy;
    known += (i > 0 ? ", " : "") + std::string(strategy_name(strategy));
  }
  raise_invalid("strategy must be one of " + known + ", not \"" + std::string(*name) + "\"");
}

LengthRule length_rule_or_raise(std::string_view name) {
  const std::optional<LengthRule> rule = parse_length_rule(name);
  if (!rule) {
    raise_invalid("length_rule must be window or entropy, not \"" + std::string(name) + "\"");
  }
  return *rule;
}

std::unique_ptr<Session> create_session(
    std::shared_ptr<Model> model, int context_length, int max_tree_nodes, std::string_view drafter,
    const std::optional<CostGrid>& measured_costs, bool learn_costs, const NgramTable* ngram,
    std::shared_ptr<Model> draft_model, std::shared_ptr<const TrainedDraft> trained_draft,
    std::string_view kv, bool share_prefixes, int kv_slots, std::shared_ptr<PrefixCache> cache,
    std::shared_ptr<DraftMemory> draft_memory, double least_deadline, bool draft_thread,
    std::string_view double_buffer) {
  SessionOptions options;
  options.draft_thread = draft_thread;
  options.double_buffer = double_buffer_or_raise(double_buffer);
  options.watchdog.least_seconds = least_deadline;
  options.kv = kv_format_or_raise(kv);
  options.share_prefixes = share_prefixes;
  options.kv_slots = kv_slots;
  options.cache = std::move(cache);
  options.context_length = context_length;
  options.max_tree_nodes = max_tree_nodes;
  DrafterParts parts{
      .saved = ngram, .model = std::move(draft_model), .draft = std::move(trained_draft)};
  parts.model_options.learn_costs = learn_costs;
  parts.model_options.memory =
      draft_memory != nullptr ? std::move(draft_memory) : std::make_shared<DraftMemory>();
  parts.model_options.memory->kept_tokens = std::max(kv_slots - context_length, 0);
  parts.model_options.memory->share_prefixes = share_prefixes;
  options.drafter = value_or_raise(make_drafter(drafter, parts));
  if (measured_costs) options.measured_costs = *measured_costs;
  options.learn_costs = learn_costs;
  return value_or_raise(Session::create(std::move(model), std::move(options)));
}

void start_session(Session& session, const std::vector<int32_t>& prompt, std::string_view mode,
                   const SamplingOptions& sampling, int max_new_tokens,
                   const std::vector<int32_t>& eos_token_ids, int chain_length, int fixed_nodes,
                   bool adapt, std::string_view verifier, std::string_view length_rule, float beta,
                   double least_accepted_length, double target_milliseconds) {
  GenerateOptions options;
  options.mode = mode_or_raise(mode);
  options.sampling = sampling;
  options.max_new_tokens = max_new_tokens;
  options.eos_token_ids = eos_token_ids;
  options.chain_length = chain_length;
  options.fixed_nodes = fixed_nodes;
  options.adapt = adapt;
  options.verifier = verifier_or_raise(verifier);
  options.length_rule = length_rule_or_raise(length_rule);
  options.controller.beta_base = beta;
  options.strategy = {least_accepted_length, target_milliseconds};
  nb::gil_scoped_release unlocked;
  raise_unless_ok(session.start(prompt, options));
}

std::vector<int32_t> step_session(Session& session) {
  nb::gil_scoped_release unlocked;
  const std::span<const int32_t> tokens = value_or_raise(session.step());
  return {tokens.begin(), tokens.end()};
}

}  // namespace

void bind_engine(nb::module_& module) {
  module.def(
      "drafter_names",
      [] { return std::vector<std::string>(kDrafterNames.begin(), kDrafterNames.end()); },
      "What Session.create takes as `drafter`, the default first.");

  nb::class_<SessionStats>(module, "SessionStats", "Counts and times of one answer.")
      .def_prop_ro("mode",
                   [](const SessionStats& self) { return std::string(mode_name(self.mode)); })
      .def_prop_ro(
          "verifier",
          [](const SessionStats& self) { return std::string(verifier_name(self.verifier)); })
      .def_ro("prompt_tokens", &SessionStats::prompt_tokens)
      .def_ro("reused_prompt_tokens", &SessionStats::reused_prompt_tokens)
      .def_ro("emitted_tokens", &SessionStats::emitted_tokens)
      .def_ro("steps", &SessionStats::steps)
      .def_ro("rows_verified", &SessionStats::rows_verified)
      .def_ro("drafted_tokens", &SessionStats::drafted_tokens)
      .def_ro("accepted_tokens", &SessionStats::accepted_tokens)
      .def_ro("soft_fallbacks", &SessionStats::soft_fallbacks)
      .def_ro("hard_fallbacks", &SessionStats::hard_fallbacks)
      .def_ro("peak_kv_slots", &SessionStats::peak_kv_slots)
      .def_ro("peak_draft_slots", &SessionStats::peak_draft_slots,
              "The most that a step held beyond the text.")
      .def_ro("beta", &SessionStats::beta)
      .def_prop_ro("heat",
                   [](const SessionStats& self) { return std::string(heat_name(self.heat)); })
      .def_prop_ro(
          "heat_reason",
          [](const SessionStats& self) { return std::string(reason_name(self.heat_reason)); },
          "Of the latest change; empty: there was none.")
      .def_prop_ro("memory_pressure",
                   [](const SessionStats& self) {
                     return std::string(memory_pressure_name(self.memory_pressure));
                   })
      .def_ro("celsius", &SessionStats::celsius, "The latest reading.")
      .def_prop_ro(
          "strategy",
          [](const SessionStats& self) {
            return std::string(strategy_name(self.strategy.strategy));
          },
          "What the latest step drafted in place of what was asked for.")
      .def_prop_ro(
          "strategy_reason",
          [](const SessionStats& self) { return std::string(reason_name(self.strategy.reason)); },
          "Why that last changed; empty: it did not.")
      .def_ro("strategy_changes", &SessionStats::strategy_changes)
      .def_prop_ro(
          "recent_tokens_per_second",
          [](const SessionStats& self) { return self.recent.tokens_per_second(); },
          "Of the latest steps.")
      .def_prop_ro("recent_accepted_length",
                   [](const SessionStats& self) { return self.recent.accepted_length(); })
      .def_ro("tree_nodes", &SessionStats::tree_nodes, "Of the latest step.")
      .def_ro("tree_depth", &SessionStats::tree_depth)
      .def_ro("prefill_seconds", &SessionStats::prefill_seconds)
      .def_ro("decode_seconds", &SessionStats::decode_seconds)
      .def_ro("draft_seconds", &SessionStats::draft_seconds)
      .def_prop_ro("cost_curve",
                   [](const SessionStats& self) { return self.tuned_costs ? "tuned" : "learned"; })
      .def_prop_ro("hidden_draft_share", &SessionStats::hidden_draft_share,
                   "Of the time for drafting that was of use: what passed while the target "
                   "verified.")
      .def_ro("hidden_draft_seconds", &SessionStats::hidden_draft_seconds)
      .def_prop_ro(
          "draft_way",
          [](const SessionStats& self) { return std::string(draft_way_name(self.draft_way)); },
          "Of the latest step: \"in turns\" with the target, \"beside\" it on a thread of its own, "
          "or \"ahead\", going on while the target verifies.")
      .def_ro("kept_ahead", &SessionStats::kept_ahead,
              "Steps whose text went where the draft had looked ahead.")
      .def_ro("discarded_ahead", &SessionStats::discarded_ahead, "Steps whose text went elsewhere.")
      .def_ro("missed_deadlines", &SessionStats::missed_deadlines,
              "Of a step's stages, and drafts that failed.")
      .def_ro("watchdog", &SessionStats::watchdog,
              "The latest of these in words; empty: there were none.")
      .def_prop_ro("mean_accepted_length", &SessionStats::mean_accepted_length)
      .def_prop_ro("mean_draft_slots", &SessionStats::mean_draft_slots,
                   "Held beyond the text, a step.")
      .def_prop_ro("tokens_per_second", &SessionStats::tokens_per_second)
      .def_prop_ro("prompt_tokens_per_second", &SessionStats::prompt_tokens_per_second);

  nb::class_<PrefixCache>(module, "PrefixCache",
                          "A KV cache that keeps the prefixes of earlier texts. Session.cache; "
                          "sessions over one model may share it, one at a time being used.")
      .def_prop_ro("slots", &PrefixCache::slots)
      .def_prop_ro("taken", &PrefixCache::taken, "By living texts and kept prefixes.")
      .def_prop_ro("stored", &PrefixCache::stored, "Of these, in prefixes that texts may share.")
      .def_prop_ro("is_whole", &PrefixCache::is_whole,
                   "Every slot that is taken is stored, or was given out and not yet given back.")
      .def("is_taken", &PrefixCache::is_taken, nb::arg("slot"))
      .def("forget", &PrefixCache::forget, "Evicts all that no living text holds.");
  nb::class_<DraftMemory>(module, "DraftMemory",
                          "Where a draft's K and V lie, for sessions that share a cache.")
      .def(nb::init<>());

  nb::class_<Session>(module, "Session",
                      "One conversation with a model. Not thread-safe, except for cancel().")
      .def_static(
          "create", &create_session, nb::arg("model"), nb::kw_only(), nb::arg("context_length"),
          nb::arg("max_tree_nodes") = 31, nb::arg("drafter") = "mix",
          nb::arg("measured_costs") = nb::none(), nb::arg("learn_costs") = true,
          nb::arg("ngram") = nb::none(), nb::arg("draft_model") = nb::none(),
          nb::arg("trained_draft") = nb::none(), nb::arg("kv") = "float16",
          nb::arg("share_prefixes") = true, nb::arg("kv_slots") = 0, nb::arg("cache") = nb::none(),
          nb::arg("draft_memory") = nb::none(),
          nb::arg("least_deadline") = WatchdogOptions().least_seconds,
          nb::arg("draft_thread") = false, nb::arg("double_buffer") = "measured",
          "`drafter`: one of drafter_names(). `measured_costs`: what a pass costs here; "
          "without it the session finds out from its own steps. `ngram`: what the drafter begins "
          "with. `draft_model`: what a drafter runs that runs a model; `trained_draft`: what one "
          "runs that runs a draft. `kv`: the cache's format, float16 or int8. `share_prefixes`: "
          "what it has room for keeps earlier texts, and who begins like one computes only the "
          "rest. `kv_slots`: its room, in tokens; 0: just what the context and a step need. "
          "`cache`, `draft_memory`: those of other sessions over this model and draft. "
          "`least_deadline`: seconds that a step's stage has at least before it counts as hanging; "
          "0: for ever. `draft_thread`: what runs a network to draft does so on a thread of its "
          "own, beside the target; the network must have been opened with threads of its own. "
          "`double_buffer`: whether it looks ahead while the target verifies: on, off, or "
          "measured, the fastest of all ways, in turns with the target too.")
      .def(
          "start", &start_session, nb::arg("prompt"), nb::kw_only(), nb::arg("mode") = "dynamic",
          nb::arg("sampling") = SamplingOptions(), nb::arg("max_new_tokens") = 128,
          nb::arg("eos_token_ids") = std::vector<int32_t>(), nb::arg("chain_length") = 4,
          nb::arg("fixed_nodes") = 15, nb::arg("adapt") = false,
          nb::arg("verifier") = "target_draw", nb::arg("length_rule") = "window",
          nb::arg("beta") = ControllerOptions().beta_base,
          nb::arg("least_accepted_length") = StrategyOptions().least_accepted_length,
          nb::arg("target_milliseconds") = StrategyOptions().target_milliseconds,
          "Takes a whole prompt and fills the cache with it. `adapt`: chain and fixed fall back "
          "where guesses fail, chains take their length from `length_rule` (window: how many came "
          "true; entropy: how certain the draft is), and `beta` follows the length of the steps. "
          "`verifier`: with rejection, block and traversal drafts are drawn; the law of the text "
          "is the same, the text at a seed is not. `beta`: the share pruned of a draft's law "
          "where it is certain. `least_accepted_length`: where steps emit fewer tokens, a chain or "
          "nothing is tried, and used if it is faster; `target_milliseconds`: where tokens take "
          "longer, a greedy tree is, in place of a chain or a fixed tree; 0: never. The GIL is "
          "released.")
      .def("step", &step_session,
           "One verify step: the tokens it emitted, none once the answer has ended. The GIL is "
           "released.")
      .def(
          "finish_at", [](Session& self, int emitted) { raise_unless_ok(self.finish_at(emitted)); },
          nb::arg("emitted"), "Ends the answer after its first `emitted` tokens.")
      .def(
          "observe",
          [](Session& self, std::optional<float> celsius, std::optional<float> watts,
             float watts_budget, std::optional<int> thermal_status,
             std::optional<float> memory_used, std::optional<int> trim_level) {
            self.observe({celsius, watts, watts_budget, thermal_status, memory_used, trim_level});
          },
          nb::kw_only(), nb::arg("celsius") = nb::none(), nb::arg("watts") = nb::none(),
          nb::arg("watts_budget") = DeviceReadings().watts_budget,
          nb::arg("thermal_status") = nb::none(), nb::arg("memory_used") = nb::none(),
          nb::arg("trim_level") = nb::none(),
          "What sensors and the platform say of the device, now: above 45 C or the power budget "
          "the next steps speculate less, above 55 C not at all, with 90 % of the memory taken "
          "(`memory_used`, a share) their trees are narrower, with 97 % chains, until it is well "
          "again. `thermal_status`, `trim_level`: Android's. The text stays the same.")
      .def(
          "force",
          [](Session& self, std::optional<std::string_view> strategy) {
            self.force(strategy_or_raise(strategy));
          },
          nb::arg("strategy").none(),
          "From the next step on it drafts so, as far as device and watchdog allow; None: as it "
          "finds best. For comparing strategies.")
      .def("record_into", &Session::record_into, nb::arg("ring").none(),
           "Events go into this ring from the next start or step on; None: into none.")
      .def("cancel", &Session::cancel, "From any thread: the next step ends the answer.")
      .def_prop_ro(
          "stop_reason",
          [](const Session& self) { return std::string(stop_reason_name(self.stop_reason())); },
          "\"none\", \"eos\", \"length\", \"context\", \"stopped\" or \"cancelled\".")
      .def_prop_ro(
          "stats", [](const Session& self) { return self.stats(); }, "A copy, as of now.")
      .def_prop_ro(
          "tokens",
          [](const Session& self) {
            return std::vector<int32_t>(self.tokens().begin(), self.tokens().end());
          },
          "Prompt and emitted tokens.")
      .def_prop_ro("context_length", &Session::context_length)
      .def_prop_ro("kv_bytes_per_token", &Session::kv_bytes_per_token)
      .def_prop_ro(
          "cache", [](const Session& self) { return self.cache(); }, "Which others may share.")
      .def_prop_ro(
          "cost_curve", [](const Session& self) { return self.cost_curve(); }, "A copy, as of now.")
      .def_prop_ro(
          "last_tree", [](const Session& self) { return self.last_tree(); },
          "A copy of the latest step's draft.");
}

}  // namespace sapwood::python
