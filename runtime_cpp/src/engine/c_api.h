// Inside the C interface: what the handles hold, and how a Status or an exception becomes a code.
// Every entry catches everything: only allocation can throw here, but an exception that crossed
// into C would end the caller's process.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "engine/session.h"
#include "model/bundle.h"
#include "sapwood/sapwood.h"

struct sapwood_engine {
  std::shared_ptr<const sapwood::Bundle> bundle;
  std::shared_ptr<sapwood::Model> model;
  std::string host;
  int threads = 1;

  // Of the latest session. What it read is taken over by the next one, once it is closed.
  std::shared_ptr<sapwood::PrefixCache> cache;
  struct Draft {
    std::string drafter, path;
    std::shared_ptr<sapwood::Model> model;
    std::shared_ptr<const sapwood::TrainedDraft> trained;
    std::shared_ptr<sapwood::DraftMemory> memory;
  };
  Draft draft;
};

struct sapwood_session {
  std::shared_ptr<const sapwood::Bundle> bundle;
  std::unique_ptr<sapwood::Session> session;
  std::string tree_json;
  std::shared_ptr<sapwood::TraceRing> ring;  // null: nothing is recorded
  std::vector<sapwood_trace_event> taken;
};

namespace sapwood::c_api {

// Keeps the message for sapwood_last_error().
sapwood_code report(const Status& status);

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

inline Status missing(const char* what) {
  return Status(Code::kInvalidArgument, std::string(what) + " is null");
}

// Our defaults into the caller's structure of `size` bytes, which an older or a newer header wrote;
// what only the newer one knows is 0.
template <typename Structure>
void write_defaults(Structure* given, size_t size, Structure defaults) {
  defaults.size = size;
  std::memset(given, 0, size);
  std::memcpy(given, &defaults, std::min(size, sizeof(defaults)));
}

// The caller's structure over our defaults: a smaller one comes from an older header, whose fields
// are the first ones of ours. `smallest`: the size in the first header; one that no header ever had
// means _init was not called.
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

}  // namespace sapwood::c_api
