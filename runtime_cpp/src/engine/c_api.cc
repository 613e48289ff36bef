// The C interface: errors, names, and the engine - a bundle and the host that runs it.
#include "engine/c_api.h"

#include <thread>
#include <utility>

#include "engine/mode.h"
#include "model/executorch.h"
#include "model/native.h"
#ifdef SAPWOOD_WITH_ONNXRUNTIME
#include "model/onnxruntime.h"
#endif

namespace sapwood::c_api {
namespace {

constexpr int kMostDefaultThreads = 4;

thread_local std::string last_error;

static_assert(static_cast<int>(Code::kInternal) == SAPWOOD_INTERNAL);
static_assert(static_cast<int>(Code::kExhausted) == SAPWOOD_EXHAUSTED);
static_assert(static_cast<int>(Mode::kDynamic) == SAPWOOD_DYNAMIC);
static_assert(static_cast<int>(StopReason::kCancelled) == SAPWOOD_STOP_CANCELLED);
static_assert(static_cast<int>(Verifier::kTraversal) == SAPWOOD_TRAVERSAL);
static_assert(static_cast<int>(LengthRule::kEntropy) == SAPWOOD_LENGTH_BY_ENTROPY);

Status open_engine(const char* path, const sapwood_engine_options* given, sapwood_engine** out) {
  sapwood_engine_options options;
  sapwood_engine_options_init(&options, sizeof(options));
  SAPWOOD_TRY(read_options(given, offsetof(sapwood_engine_options, executorch_library), options));
  const std::string host = options.host != nullptr ? options.host : "native";
  if (host != "native" && host != "onnxruntime" && host != "executorch") {
    return Status(Code::kInvalidArgument,
                  "host must be native, onnxruntime or executorch, not \"" + host + '"');
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
  engine->threads = threads;
  const auto keep = [&](Result<std::unique_ptr<Model>> model) {
    if (!model.ok()) return model.status();
    engine->model = std::move(model).value();
    *out = engine.release();
    return Status::okay();
  };
  if (host == "native") return keep(open_native_model(engine->bundle, {.threads = threads}));
  if (host == "executorch") {
    ExecutorchOptions executorch;
    executorch.threads = threads;
    if (options.executorch_library != nullptr) executorch.library = options.executorch_library;
    if (options.executorch_runtime != nullptr) executorch.runtime = options.executorch_runtime;
    return keep(open_executorch_model(engine->bundle, executorch));
  }
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

}  // namespace

sapwood_code report(const Status& status) {
  if (status.ok()) return SAPWOOD_OK;
  last_error = status.message();
  return static_cast<sapwood_code>(status.code());
}

}  // namespace sapwood::c_api

using sapwood::c_api::guarded;
using sapwood::c_api::missing;
using sapwood::c_api::write_defaults;

extern "C" {

const char* sapwood_version(void) { return SAPWOOD_VERSION; }

const char* sapwood_last_error(void) { return sapwood::c_api::last_error.c_str(); }

// The names are literals, and so end with a zero.
const char* sapwood_mode_name(int32_t mode) {
  return sapwood::mode_name(static_cast<sapwood::Mode>(mode)).data();
}

const char* sapwood_verifier_name(int32_t verifier) {
  return sapwood::verifier_name(static_cast<sapwood::Verifier>(verifier)).data();
}

const char* sapwood_stop_reason_name(int32_t reason) {
  return sapwood::stop_reason_name(static_cast<sapwood::StopReason>(reason)).data();
}

void sapwood_engine_options_init(sapwood_engine_options* options, size_t size) {
  write_defaults<sapwood_engine_options>(options, size,
                                         {0, "native", 0, 1, nullptr, nullptr, nullptr});
}

sapwood_code sapwood_engine_open(const char* bundle, const sapwood_engine_options* options,
                                 sapwood_engine** engine) {
  return guarded([&] {
    if (engine == nullptr) return missing("engine");
    *engine = nullptr;
    if (bundle == nullptr) return missing("bundle");
    return sapwood::c_api::open_engine(bundle, options, engine);
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

}  // extern "C"
