// The C interface: sessions.
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/sha256.h"
#include "draft/drafters.h"
#include "draft/trained_draft.h"
#include "engine/c_api.h"
#include "kernels/kernels.h"
#include "model/draft_folder.h"
#include "model/draft_model.h"
#include "tree/cost_file.h"

namespace sapwood::c_api {
namespace {

// What a drafter of this name runs, into draft->model or draft->trained.
Status open_draft(const sapwood_engine& engine, const std::string& drafter, const char* path,
                  int own_threads, sapwood_engine::Draft* draft) {
  const auto keep = [&](Result<std::unique_ptr<Model>> opened) {
    if (opened.ok()) draft->model = std::move(opened).value();
    return opened.status();
  };
  NativeOptions options;
  options.threads = engine.threads;
  options.team = engine.model->team();
  if (own_threads > 0) {
    options.threads = own_threads;
    options.team = nullptr;
  }
  if (path != nullptr && is_draft_folder(path)) {
    Result<std::shared_ptr<const TrainedDraft>> opened =
        open_trained_draft(path, engine.bundle, {}, options);
    if (opened.ok()) draft->trained = std::move(opened).value();
    return opened.status();
  }
  if (path != nullptr) {
    Result<Bundle> bundle = Bundle::open(path);
    if (!bundle.ok()) return bundle.status();
    return keep(open_draft_model(
        *engine.bundle, std::make_shared<const Bundle>(std::move(bundle).value()), options));
  }
  if (drafter == "model" || !drafter_needs_model(drafter)) return Status::okay();
  return keep(open_early_exit(engine.bundle, options));
}

// Only of a session that was closed is anything taken over: nobody else holds it then.
template <typename Shared>
bool is_idle(const std::shared_ptr<Shared>& shared) {
  return shared != nullptr && shared.use_count() == 1;
}

Result<std::unique_ptr<Drafter>> drafter_of(sapwood_engine& engine,
                                            const sapwood_session_options& options,
                                            int context_length) {
  const std::string name = options.drafter != nullptr ? options.drafter : "mix";
  DrafterParts parts;
  std::optional<NgramTable> table;
  if (options.ngram_table != nullptr) {
    const Manifest& manifest = engine.bundle->manifest();
    const FileEntry* tokenizer = manifest.file(manifest.tokenizer.file);
    Result<NgramTable> read =
        NgramTable::read(options.ngram_table, manifest.spec.vocabulary_size,
                         tokenizer != nullptr ? hexadecimal(tokenizer->sha256) : std::string());
    if (!read.ok()) return read.status();
    parts.saved = &table.emplace(std::move(read).value());
  }
  const std::string path = options.draft_bundle != nullptr ? options.draft_bundle : "";
  if (options.draft_threads > 0) {
    // Shared with no other session: one that hangs may be left behind with it.
    sapwood_engine::Draft own;
    SAPWOOD_TRY(open_draft(engine, name, options.draft_bundle, options.draft_threads, &own));
    parts.model = own.model;
    parts.draft = own.trained;
    parts.model_options.memory = std::make_shared<DraftMemory>();
    parts.model_options.memory->kept_tokens = std::max(options.kv_slots - context_length, 0);
    parts.model_options.memory->share_prefixes = options.share_prefixes != 0;
    return make_drafter(name, parts);
  }
  sapwood_engine::Draft& draft = engine.draft;
  if (draft.drafter != name || draft.path != path) {
    sapwood_engine::Draft opened;
    opened.drafter = name;
    opened.path = path;
    SAPWOOD_TRY(open_draft(engine, name, options.draft_bundle, 0, &opened));
    draft = std::move(opened);
  }
  parts.model = draft.model;
  parts.draft = draft.trained;
  const bool share = options.share_prefixes != 0;
  parts.model_options.memory =
      share && is_idle(draft.memory) ? draft.memory : std::make_shared<DraftMemory>();
  parts.model_options.memory->kept_tokens = std::max(options.kv_slots - context_length, 0);
  parts.model_options.memory->share_prefixes = share;
  draft.memory = share ? parts.model_options.memory : nullptr;
  return make_drafter(name, parts);
}

// Refused where a pass would cost something else than was measured.
Result<CostGrid> costs_of(const sapwood_engine& engine, const char* path, KvFormat kv) {
  Result<CostFile> file = read_cost_file(path);
  if (!file.ok()) return file.status();
  const auto refuse = [&](const std::string& measured, const std::string& used) {
    return Status(Code::kInvalidArgument, std::string(path) + ": measured with " + measured +
                                              ", not with " + used +
                                              "; run `sapwood tune` for this use");
  };
  const Manifest& manifest = engine.bundle->manifest();
  const FileEntry* weights = manifest.file(manifest.weights_file);
  if (weights != nullptr && file->weights_sha256 != hexadecimal(weights->sha256)) {
    return refuse("other weights", "this bundle's");
  }
  if (file->host != engine.host) {
    return refuse("the host " + printable(file->host), "the host " + engine.host);
  }
  if (file->threads != engine.threads) {
    return refuse(std::to_string(file->threads) + " threads",
                  std::to_string(engine.threads) + " threads");
  }
  if (file->kernels != kernels().name) {
    return refuse("the kernels " + printable(file->kernels),
                  "the kernels " + std::string(kernels().name));
  }
  if (file->kv != kv_format_name(kv)) {
    return refuse("a KV cache of " + printable(file->kv), std::string(kv_format_name(kv)));
  }
  return std::move(file->grid);
}

Status create_session(sapwood_engine* engine, const sapwood_session_options* given,
                      sapwood_session** out) {
  sapwood_session_options options;
  sapwood_session_options_init(&options, sizeof(options));
  SAPWOOD_TRY(read_options(given, offsetof(sapwood_session_options, drafter), options));
  SessionOptions session;
  session.context_length = options.context_length != 0
                               ? options.context_length
                               : engine->bundle->manifest().default_context_length;
  session.max_tree_nodes = options.max_tree_nodes;
  session.share_prefixes = options.share_prefixes != 0;
  session.kv_slots = options.kv_slots;
  session.watchdog.least_seconds = options.least_deadline;
  if (options.draft_threads < 0) {
    return Status(
        Code::kInvalidArgument,
        "draft_threads is " + std::to_string(options.draft_threads) + "; it must be 0 or above");
  }
  session.draft_thread = options.draft_threads > 0;
  if (options.double_buffer != nullptr) {
    const std::optional<DoubleBuffer> parsed = parse_double_buffer(options.double_buffer);
    if (!parsed) {
      return Status(Code::kInvalidArgument, "double_buffer must be measured, on or off, not \"" +
                                                std::string(options.double_buffer) + '"');
    }
    session.double_buffer = *parsed;
  }
  if (options.kv != nullptr) {
    const std::optional<KvFormat> format = parse_kv_format(options.kv);
    if (!format) {
      return Status(Code::kInvalidArgument,
                    "kv must be float16 or int8, not \"" + std::string(options.kv) + '"');
    }
    session.kv = *format;
  }
  Result<std::unique_ptr<Drafter>> drafter = drafter_of(*engine, options, session.context_length);
  if (!drafter.ok()) return drafter.status();
  session.drafter = std::move(drafter).value();
  if (options.measured_costs != nullptr) {
    Result<CostGrid> costs = costs_of(*engine, options.measured_costs, session.kv);
    if (!costs.ok()) return costs.status();
    session.measured_costs = std::move(costs).value();
  }
  const int64_t slots =
      std::max<int64_t>(options.kv_slots, int64_t{session.context_length} + options.max_tree_nodes);
  if (session.share_prefixes && is_idle(engine->cache) &&
      engine->cache->kv().format() == session.kv && engine->cache->slots() >= slots) {
    session.cache = engine->cache;
  }
  Result<std::unique_ptr<Session>> created = Session::create(engine->model, std::move(session));
  if (!created.ok()) return created.status();
  engine->cache = options.share_prefixes != 0 ? created.value()->cache() : nullptr;
  auto made = std::make_unique<sapwood_session>();
  made->bundle = engine->bundle;
  made->session = std::move(created).value();
  *out = made.release();
  return Status::okay();
}

Status start_session(sapwood_session* session, std::span<const int32_t> prompt,
                     const sapwood_generate_options* given) {
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
  SAPWOOD_TRY(read_options(given, offsetof(sapwood_generate_options, verifier), options));
  if (options.mode < SAPWOOD_PLAIN || options.mode > SAPWOOD_DYNAMIC) {
    return Status(Code::kInvalidArgument,
                  "mode is " + std::to_string(options.mode) + "; it must be a sapwood_mode");
  }
  if (options.verifier < SAPWOOD_TARGET_DRAW || options.verifier > SAPWOOD_TRAVERSAL) {
    return Status(Code::kInvalidArgument, "verifier is " + std::to_string(options.verifier) +
                                              "; it must be a sapwood_verifier");
  }
  if (options.length_rule < SAPWOOD_LENGTH_BY_WINDOW ||
      options.length_rule > SAPWOOD_LENGTH_BY_ENTROPY) {
    return Status(Code::kInvalidArgument, "length_rule is " + std::to_string(options.length_rule) +
                                              "; it must be a sapwood_length_rule");
  }
  if (options.eos_tokens == nullptr && options.eos_token_count > 0) return missing("eos_tokens");
  GenerateOptions generate;
  generate.mode = static_cast<Mode>(options.mode);
  generate.max_new_tokens = options.max_new_tokens;
  generate.sampling = {.temperature = options.temperature,
                       .top_k = options.top_k,
                       .top_p = options.top_p,
                       .min_p = options.min_p,
                       .repetition_penalty = options.repetition_penalty,
                       .seed = options.seed};
  generate.chain_length = options.chain_length;
  generate.fixed_nodes = options.fixed_nodes;
  generate.verifier = static_cast<Verifier>(options.verifier);
  generate.adapt = options.adapt != 0;
  generate.length_rule = static_cast<LengthRule>(options.length_rule);
  generate.controller.beta_base = options.beta;
  generate.strategy = {static_cast<double>(options.least_accepted_length),
                       static_cast<double>(options.target_milliseconds)};
  if (options.ignore_eos == 0) {
    if (options.eos_tokens != nullptr) {
      generate.eos_token_ids.assign(options.eos_tokens,
                                    options.eos_tokens + options.eos_token_count);
    } else {
      const std::vector<int>& declared = session->bundle->tokenizer().eos_token_ids;
      generate.eos_token_ids.assign(declared.begin(), declared.end());
    }
  }
  return session->session->start(prompt, generate);
}

}  // namespace
}  // namespace sapwood::c_api

using sapwood::Status;
using sapwood::c_api::guarded;
using sapwood::c_api::missing;
using sapwood::c_api::read_options;
using sapwood::c_api::write_defaults;

extern "C" {

void sapwood_session_options_init(sapwood_session_options* options, size_t size) {
  sapwood_session_options filled{};
  const sapwood::SessionOptions defaults;
  filled.max_tree_nodes = defaults.max_tree_nodes;
  filled.share_prefixes = defaults.share_prefixes ? 1 : 0;
  filled.kv_slots = defaults.kv_slots;
  filled.least_deadline = defaults.watchdog.least_seconds;
  write_defaults(options, size, filled);
}

sapwood_code sapwood_session_create(sapwood_engine* engine, const sapwood_session_options* options,
                                    sapwood_session** session) {
  return guarded([&] {
    if (session == nullptr) return missing("session");
    *session = nullptr;
    if (engine == nullptr) return missing("engine");
    return sapwood::c_api::create_session(engine, options, session);
  });
}

void sapwood_session_close(sapwood_session* session) { delete session; }

void sapwood_generate_options_init(sapwood_generate_options* options, size_t size) {
  const sapwood::GenerateOptions defaults;
  const sapwood::SamplingOptions& sampling = defaults.sampling;
  sapwood_generate_options filled{};
  filled.mode = static_cast<int32_t>(defaults.mode);
  filled.max_new_tokens = defaults.max_new_tokens;
  filled.temperature = sampling.temperature;
  filled.top_k = sampling.top_k;
  filled.top_p = sampling.top_p;
  filled.min_p = sampling.min_p;
  filled.repetition_penalty = sampling.repetition_penalty;
  filled.seed = sampling.seed;
  filled.chain_length = defaults.chain_length;
  filled.fixed_nodes = defaults.fixed_nodes;
  filled.verifier = static_cast<int32_t>(defaults.verifier);
  filled.adapt = defaults.adapt ? 1 : 0;
  filled.length_rule = static_cast<int32_t>(defaults.length_rule);
  filled.beta = defaults.controller.beta_base;
  write_defaults(options, size, filled);
}

sapwood_code sapwood_session_start(sapwood_session* session, const int32_t* prompt,
                                   size_t prompt_length, const sapwood_generate_options* options) {
  return guarded([&] {
    if (session == nullptr) return missing("session");
    if (prompt == nullptr && prompt_length > 0) return missing("prompt");
    return sapwood::c_api::start_session(session, {prompt, prompt_length}, options);
  });
}

sapwood_code sapwood_session_step(sapwood_session* session, const int32_t** tokens, size_t* count) {
  return guarded([&] {
    if (tokens == nullptr || count == nullptr) return missing("tokens or count");
    *tokens = nullptr;
    *count = 0;
    if (session == nullptr) return missing("session");
    const auto emitted = session->session->step();
    if (!emitted.ok()) return emitted.status();
    *tokens = emitted.value().data();
    *count = emitted.value().size();
    return Status::okay();
  });
}

sapwood_code sapwood_session_finish_at(sapwood_session* session, int32_t emitted) {
  return guarded([&] {
    return session == nullptr ? missing("session") : session->session->finish_at(emitted);
  });
}

void sapwood_session_cancel(sapwood_session* session) { session->session->cancel(); }

sapwood_stop_reason sapwood_session_stop_reason(const sapwood_session* session) {
  return static_cast<sapwood_stop_reason>(session->session->stop_reason());
}

void sapwood_stats_init(sapwood_stats* stats, size_t size) {
  sapwood_stats filled{};
  filled.watchdog = "";
  write_defaults(stats, size, filled);
}

sapwood_code sapwood_session_stats(const sapwood_session* session, sapwood_stats* stats) {
  return guarded([&] {
    if (session == nullptr || stats == nullptr) return missing("session or stats");
    sapwood_stats all;
    sapwood_stats_init(&all, sizeof(all));
    SAPWOOD_TRY(read_options(stats, offsetof(sapwood_stats, verifier), all));
    const sapwood::SessionStats& from = session->session->stats();
    all.mode = static_cast<int32_t>(from.mode);
    all.prompt_tokens = from.prompt_tokens;
    all.reused_prompt_tokens = from.reused_prompt_tokens;
    all.emitted_tokens = from.emitted_tokens;
    all.steps = from.steps;
    all.rows_verified = from.rows_verified;
    all.drafted_tokens = from.drafted_tokens;
    all.accepted_tokens = from.accepted_tokens;
    all.peak_kv_slots = from.peak_kv_slots;
    all.prefill_seconds = from.prefill_seconds;
    all.decode_seconds = from.decode_seconds;
    all.draft_seconds = from.draft_seconds;
    all.mean_accepted_length = from.mean_accepted_length();
    all.tokens_per_second = from.tokens_per_second();
    all.prompt_tokens_per_second = from.prompt_tokens_per_second();
    all.verifier = static_cast<int32_t>(from.verifier);
    all.peak_draft_slots = from.peak_draft_slots;
    all.mean_draft_slots = from.mean_draft_slots();
    all.beta = from.beta;
    all.soft_fallbacks = from.soft_fallbacks;
    all.hard_fallbacks = from.hard_fallbacks;
    all.tuned_costs = from.tuned_costs ? 1 : 0;
    all.missed_deadlines = from.missed_deadlines;
    all.hidden_draft_share = from.hidden_draft_share();
    all.watchdog = from.watchdog.c_str();
    all.heat = static_cast<int32_t>(from.heat);
    all.heat_reason = static_cast<int32_t>(from.heat_reason);
    all.memory_pressure = static_cast<int32_t>(from.memory_pressure);
    all.memory_reason = static_cast<int32_t>(from.memory_reason);
    all.strategy = static_cast<int32_t>(from.strategy.strategy);
    all.strategy_reason = static_cast<int32_t>(from.strategy.reason);
    all.tree_nodes = from.tree_nodes;
    all.tree_depth = from.tree_depth;
    all.strategy_changes = from.strategy_changes;
    all.recent_tokens_per_second = from.recent.tokens_per_second();
    all.recent_accepted_length = from.recent.accepted_length();
    all.celsius =
        static_cast<double>(from.celsius.value_or(std::numeric_limits<float>::quiet_NaN()));
    all.kv_bytes = static_cast<int64_t>(session->session->kv_slots_taken()) *
                   static_cast<int64_t>(session->session->kv_bytes_per_token());
    std::memcpy(stats, &all, std::min(all.size, sizeof(all)));
    return Status::okay();
  });
}

const char* sapwood_session_tree_json(sapwood_session* session) {
  const sapwood_code code = guarded([&] {
    if (session == nullptr) return missing("session");
    session->tree_json = session->session->last_tree().to_json();
    return Status::okay();
  });
  return code == SAPWOOD_OK ? session->tree_json.c_str() : nullptr;
}

}  // extern "C"
