// The engine's requests as JSON, read into what they ask for; and statistics as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "engine_process/answerer.h"

namespace sapwood {

inline constexpr int64_t kMaxRequestId = (int64_t{1} << 53) - 1;

// What a client asks for with `trace`: to record so many of the latest events from now on, or to
// write into a file what was recorded.
struct TraceRequest {
  int64_t id = 0;
  int32_t events = 0;  // 0: to stop
  std::optional<std::string> file;
};

// Errors are kInvalidArgument and name the field. `name` is how errors call the request.
Status read_id(const JsonObject& request, int64_t* id);
Status read_load(const JsonObject& request, AnswererOptions* options);
// `payload`: the request's text, as messages keep the order of their fields.
Status read_generate(const JsonObject& request, std::string_view payload, AnswerRequest* answer,
                     int* snapshot_milliseconds);
// What is not named: there is no such sensor.
Status read_thermal(const JsonObject& request, sapwood_readings* readings);
Status read_trace(const JsonObject& request, TraceRequest* trace);

// What does not change between a load and the next.
struct LoadedFacts {
  std::string drafter;
  std::string host;
  int threads = 0;
};
// celsius: of the device, as its host last said; NaN: never.
nlohmann::json stats_json(const sapwood_stats& stats, const LoadedFacts& facts,
                          double first_token_seconds, double celsius);
nlohmann::json tree_json(const std::vector<TreeNode>& nodes);

}  // namespace sapwood
