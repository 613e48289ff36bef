// The C interface over bundle, host and session. Every entry catches everything: only allocation
// can throw here, but an exception that crossed into C would end the caller's process.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/session.h"
#include "model/bundle.h"
#include "model/native.h"
#include "sapwood/sapwood.h"
#ifdef SAPWOOD_WITH_ONNXRUNTIME
#include "model/onnxruntime.h"
#endif

struct sapwood_engine {
  std::shared_ptr<const sapwood::Bundle> bundle;
  std::shared_ptr<sapwood::Model> model;
  std::string host;
};

struct sapwood_session {
  std::shared_ptr<const sapwood::Bundle> bundle;
  std::unique_ptr<sapwood::Session> session;
  std::string tree_json;
};

namespace sapwood {
namespace {

constexpr int kMostDefaultThreads = 4;

thread_local std::string last_error;

static_assert(static_cast<int>(Code::kInternal) == SAPWOOD_INTERNAL);
static_assert(static_cast<int>(Code::kExhausted) == SAPWOOD_EXHAUSTED);
static_assert(static_cast<int>(Mode::kDynamic) == SAPWOOD_DYNAMIC);
static_assert(static_cast<int>(StopReason::kCancelled) == SAPWOOD_STOP_CANCELLED);

sapwood_code report(const Status& status) {
  if (status.ok()) return SAPWOOD_OK;
  last_error = status.message();
  return static_cast<sapwood_code>(status.code());
}

// Runs `body`, which returns a Status, and turns what it returns or throws into a code.
template <typename Body>
sapwood_code guarded(Body&& body) noexcept {
  try {
    return report(body());
  } catch (const std::bad_alloc&) {
    return report(Status(Code::kExhausted, "out of memory"));
  } catch (const std::exception& error) {
    return report(Status(Code::kInternal, error.what()));
  } catch (...) {
    return report(Status(Code::kInternal, "unknown exception"));
  }
}

Status missing(const char* what) {
  return Status(Code::kInvalidArgument, std::string(what) + " is null");
}

// The caller's structure over our defaults: a smaller one comes from an older header, whose fields
// are the first ones of ours. A size that no header ever had means _init was not called.
template <typename Options>
Status read_options(const Options* given, size_t smallest, Options& options) {
  if (given == nullptr) return Status::okay();
  if (given->size < smallest || given->size > 4096) {
    return Status(Code::kInvalidArgument,
                  "an options structure was not initialised by its _init function");
  }
  std::memcpy(&options, given, std::min(given->size, sizeof(Options)));
  return Status::okay();
}

Status open_engine(const char* path, const sapwood_engine_options* given, sapwood_engine** out) {
  sapwood_engine_options options;
  sapwood_engine_options_init(&options);
  SAPWOOD_TRY(read_options(given, sizeof(options), options));
  const std::string host = options.host != nullptr ? options.host : "native";
  if (host != "native" && host != "onnxruntime") {
    return Status(Code::kInvalidArgument,
                  "host must be native or onnxruntime, not \"" + host + '"');
  }
  if (options.threads < 0) {
    return Status(Code::kInvalidArgument,
                  "threads is " + std::to_string(options.threads) + "; it must be 0 or above");
  }
  int threads = options.threads;
  if (threads == 0) {
    threads =
        std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostDefaultThreads);
  }
  Result<Bundle> opened = Bundle::open(path, {.verify_checksums = options.verify_checksums != 0});
  if (!opened.ok()) return opened.status();
  auto engine = std::make_unique<sapwood_engine>();
  engine->bundle = std::make_shared<const Bundle>(std::move(opened).value());
  engine->host = host;
  const auto keep = [&](Result<std::unique_ptr<Model>> model) {
    if (!model.ok()) return model.status();
    engine->model = std::move(model).value();
    *out = engine.release();
    return Status::okay();
  };
  if (host == "native") return keep(open_native_model(engine->bundle, {.threads = threads}));
#ifdef SAPWOOD_WITH_ONNXRUNTIME
  OnnxRuntimeOptions onnxruntime;
  onnxruntime.threads = threads;
  if (options.onnxruntime_library != nullptr) onnxruntime.library = options.onnxruntime_library;
  return keep(open_onnxruntime_model(engine->bundle, onnxruntime));
#else
  return Status(Code::kUnsupported,
                "this library was built without the ONNX Runtime host; use the host native");
#endif
}

Status create_session(sapwood_engine* engine, const sapwood_session_options* given,
                      sapwood_session** out) {
  sapwood_session_options options;
  sapwood_session_options_init(&options);
  SAPWOOD_TRY(read_options(given, sizeof(options), options));
  SessionOptions session;
  session.context_length = options.context_length != 0
                               ? options.context_length
                               : engine->bundle->manifest().default_context_length;
  session.max_tree_nodes = options.max_tree_nodes;
  Result<std::unique_ptr<Session>> created = Session::create(engine->model, std::move(session));
  if (!created.ok()) return created.status();
  auto made = std::make_unique<sapwood_session>();
  made->bundle = engine->bundle;
  made->session = std::move(created).value();
  *out = made.release();
  return Status::okay();
}

Status start_session(sapwood_session* session, std::span<const int32_t> prompt,
                     const sapwood_generate_options* given) {
  sapwood_generate_options options;
  sapwood_generate_options_init(&options);
  SAPWOOD_TRY(read_options(given, sizeof(options), options));
  if (options.mode < SAPWOOD_PLAIN || options.mode > SAPWOOD_DYNAMIC) {
    return Status(Code::kInvalidArgument,
                  "mode is " + std::to_string(options.mode) + "; it must be a sapwood_mode");
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
}  // namespace sapwood

using sapwood::guarded;
using sapwood::Status;

extern "C" {

const char* sapwood_version(void) { return SAPWOOD_VERSION; }

const char* sapwood_last_error(void) { return sapwood::last_error.c_str(); }

// The names are literals, and so end with a zero.
const char* sapwood_mode_name(int32_t mode) {
  return sapwood::mode_name(static_cast<sapwood::Mode>(mode)).data();
}

const char* sapwood_stop_reason_name(int32_t reason) {
  return sapwood::stop_reason_name(static_cast<sapwood::StopReason>(reason)).data();
}

void sapwood_engine_options_init(sapwood_engine_options* options) {
  *options = {sizeof(*options), "native", 0, 1, nullptr};
}

sapwood_code sapwood_engine_open(const char* bundle, const sapwood_engine_options* options,
                                 sapwood_engine** engine) {
  return guarded([&] {
    if (engine == nullptr) return sapwood::missing("engine");
    *engine = nullptr;
    if (bundle == nullptr) return sapwood::missing("bundle");
    return sapwood::open_engine(bundle, options, engine);
  });
}

void sapwood_engine_close(sapwood_engine* engine) { delete engine; }

const char* sapwood_engine_host(const sapwood_engine* engine) { return engine->host.c_str(); }

int32_t sapwood_engine_vocabulary_size(const sapwood_engine* engine) {
  return engine->model->spec().vocabulary_size;
}

int32_t sapwood_engine_context_length(const sapwood_engine* engine) {
  return engine->model->spec().context_length;
}

void sapwood_session_options_init(sapwood_session_options* options) {
  *options = {sizeof(*options), 0, sapwood::SessionOptions().max_tree_nodes};
}

sapwood_code sapwood_session_create(sapwood_engine* engine, const sapwood_session_options* options,
                                    sapwood_session** session) {
  return guarded([&] {
    if (session == nullptr) return sapwood::missing("session");
    *session = nullptr;
    if (engine == nullptr) return sapwood::missing("engine");
    return sapwood::create_session(engine, options, session);
  });
}

void sapwood_session_close(sapwood_session* session) { delete session; }

void sapwood_generate_options_init(sapwood_generate_options* options) {
  const sapwood::GenerateOptions defaults;
  const sapwood::SamplingOptions& sampling = defaults.sampling;
  *options = {};
  options->size = sizeof(*options);
  options->mode = static_cast<int32_t>(defaults.mode);
  options->max_new_tokens = defaults.max_new_tokens;
  options->temperature = sampling.temperature;
  options->top_k = sampling.top_k;
  options->top_p = sampling.top_p;
  options->min_p = sampling.min_p;
  options->repetition_penalty = sampling.repetition_penalty;
  options->seed = sampling.seed;
  options->chain_length = defaults.chain_length;
  options->fixed_nodes = defaults.fixed_nodes;
}

sapwood_code sapwood_session_start(sapwood_session* session, const int32_t* prompt,
                                   size_t prompt_length, const sapwood_generate_options* options) {
  return guarded([&] {
    if (session == nullptr) return sapwood::missing("session");
    if (prompt == nullptr && prompt_length > 0) return sapwood::missing("prompt");
    return sapwood::start_session(session, {prompt, prompt_length}, options);
  });
}

sapwood_code sapwood_session_step(sapwood_session* session, const int32_t** tokens, size_t* count) {
  return guarded([&] {
    if (tokens == nullptr || count == nullptr) return sapwood::missing("tokens or count");
    *tokens = nullptr;
    *count = 0;
    if (session == nullptr) return sapwood::missing("session");
    const auto emitted = session->session->step();
    if (!emitted.ok()) return emitted.status();
    *tokens = emitted.value().data();
    *count = emitted.value().size();
    return Status::okay();
  });
}

sapwood_code sapwood_session_finish_at(sapwood_session* session, int32_t emitted) {
  return guarded([&] {
    return session == nullptr ? sapwood::missing("session") : session->session->finish_at(emitted);
  });
}

void sapwood_session_cancel(sapwood_session* session) { session->session->cancel(); }

sapwood_stop_reason sapwood_session_stop_reason(const sapwood_session* session) {
  return static_cast<sapwood_stop_reason>(session->session->stop_reason());
}

void sapwood_stats_init(sapwood_stats* stats) {
  *stats = {};
  stats->size = sizeof(*stats);
}

sapwood_code sapwood_session_stats(const sapwood_session* session, sapwood_stats* stats) {
  return guarded([&] {
    if (session == nullptr || stats == nullptr) return sapwood::missing("session or stats");
    sapwood_stats all;
    sapwood_stats_init(&all);
    SAPWOOD_TRY(sapwood::read_options(stats, sizeof(all), all));
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
    std::memcpy(stats, &all, std::min(all.size, sizeof(all)));
    return Status::okay();
  });
}

const char* sapwood_session_tree_json(sapwood_session* session) {
  const sapwood_code code = guarded([&] {
    if (session == nullptr) return sapwood::missing("session");
    session->tree_json = session->session->last_tree().to_json();
    return Status::okay();
  });
  return code == SAPWOOD_OK ? session->tree_json.c_str() : nullptr;
}

}  // extern "C"
