#include "engine_process/requests.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/kernels.h"
#include "text/utf8.h"
#include "trace/trace_ring.h"

namespace sapwood {
namespace {

constexpr size_t kMostStops = 16;
constexpr size_t kLongestStop = 4096;  // bytes
constexpr double kLarge = 1e9;

// The helpers of JsonObject, for fields that need not be there: null counts as absent.
template <typename Number, typename Limit>
Status read_if(const JsonObject& request, const char* key, Limit low, Limit high, Number* out) {
  return request.has(key) ? request.read(key, low, high, out) : Status::okay();
}

Status read_if(const JsonObject& request, const char* key, std::optional<std::string>* out) {
  if (!request.has(key)) return Status::okay();
  return request.read(key, &out->emplace());
}

Status read_if(const JsonObject& request, const char* key, std::string* out) {
  return request.has(key) ? request.read(key, out) : Status::okay();
}

Status read_if(const JsonObject& request, const char* key, bool* out) {
  return request.has(key) ? request.read(key, out) : Status::okay();
}

Status read_flag(const JsonObject& request, const char* key, int32_t* out) {
  bool set = *out != 0;
  SAPWOOD_TRY(read_if(request, key, &set));
  *out = set ? 1 : 0;
  return Status::okay();
}

// An enumeration of sapwood.h by the name that `name_of` gives its members.
Status read_named(const JsonObject& request, const char* key, int last,
                  const char* (*name_of)(int32_t), int32_t* out) {
  if (!request.has(key)) return Status::okay();
  std::string name;
  SAPWOOD_TRY(request.read(key, &name));
  std::string known;
  for (int32_t i = 0; i <= last; ++i) {
    if (name == name_of(i)) {
      *out = i;
      return Status::okay();
    }
    known += (i > 0 ? ", " : "") + std::string(name_of(i));
  }
  return request.error(key, "must be one of " + known + ", not " + printable(name));
}

const char* length_rule_name(int32_t rule) {
  return rule == SAPWOOD_LENGTH_BY_WINDOW ? "window" : "entropy";
}

Status read_options(const JsonObject& request, sapwood_generate_options* options) {
  sapwood_generate_options_init(options, sizeof(*options));
  options->max_new_tokens = 256;
  constexpr int kMost = std::numeric_limits<int32_t>::max();
  SAPWOOD_TRY(read_named(request, "mode", SAPWOOD_DYNAMIC, sapwood_mode_name, &options->mode));
  SAPWOOD_TRY(read_named(request, "verifier", SAPWOOD_TRAVERSAL, sapwood_verifier_name,
                         &options->verifier));
  SAPWOOD_TRY(read_named(request, "length_rule", SAPWOOD_LENGTH_BY_ENTROPY, length_rule_name,
                         &options->length_rule));
  SAPWOOD_TRY(read_if(request, "max_new_tokens", 0, kMost, &options->max_new_tokens));
  SAPWOOD_TRY(read_if(request, "temperature", 0.0, kLarge, &options->temperature));
  SAPWOOD_TRY(read_if(request, "top_k", 0, kMost, &options->top_k));
  SAPWOOD_TRY(read_if(request, "top_p", 0.0, 1.0, &options->top_p));
  SAPWOOD_TRY(read_if(request, "min_p", 0.0, 1.0, &options->min_p));
  SAPWOOD_TRY(read_if(request, "repetition_penalty", 0.01, kLarge, &options->repetition_penalty));
  int64_t seed = static_cast<int64_t>(options->seed);
  SAPWOOD_TRY(read_if(request, "seed", int64_t{0}, kMaxRequestId, &seed));
  options->seed = static_cast<uint64_t>(seed);
  SAPWOOD_TRY(read_if(request, "chain_length", 1, 255, &options->chain_length));
  SAPWOOD_TRY(read_if(request, "fixed_nodes", 1, 255, &options->fixed_nodes));
  SAPWOOD_TRY(read_if(request, "beta", 0.0, 1.0, &options->beta));
  SAPWOOD_TRY(
      read_if(request, "least_accepted_length", 0.0, kLarge, &options->least_accepted_length));
  SAPWOOD_TRY(read_if(request, "target_milliseconds", 0.0, kLarge, &options->target_milliseconds));
  SAPWOOD_TRY(read_flag(request, "adapt", &options->adapt));
  return read_flag(request, "ignore_eos", &options->ignore_eos);
}

Status check_messages(const JsonObject& request, size_t* bytes) {
  std::vector<JsonObject> messages;
  SAPWOOD_TRY(request.read("messages", &messages));
  if (messages.empty()) return request.error("messages", "there must be at least one");
  for (const JsonObject& message : messages) {
    std::string text;
    SAPWOOD_TRY(message.read("role", &text));
    SAPWOOD_TRY(message.read("content", &text));
    *bytes += text.size();
  }
  return Status::okay();
}

Status as_argument(const Status& status) {
  if (status.ok() || status.code() != Code::kCorrupt) return status;
  return Status(Code::kInvalidArgument, status.message());
}

// What a classifier of prompts reads: what the system says and the latest turn.
std::string asked_text(const nlohmann::ordered_json& messages) {
  std::string text;
  std::string latest;
  for (const auto& message : messages) {
    const auto& content = message.at("content").get_ref<const std::string&>();
    if (message.at("role") == "system") {
      text += content + '\n';
    } else {
      latest = content;
    }
  }
  return text + latest;
}

Status read_profile(const JsonObject& request, const nlohmann::ordered_json& document,
                    AnswerRequest* answer) {
  std::string profile = "off";
  SAPWOOD_TRY(read_if(request, "profile", &profile));
  const std::string text = answer->messages ? asked_text(document.at("messages")) : answer->prompt;
  if (sapwood_generate_options_profile(&answer->options, profile.c_str(), text.data(), text.size(),
                                       nullptr) == SAPWOOD_OK) {
    return Status::okay();
  }
  return request.error("profile", sapwood_last_error());
}

Status read_generate_fields(const JsonObject& request, std::string_view payload,
                            AnswerRequest* answer, int* snapshot_milliseconds) {
  SAPWOOD_TRY(read_options(request, &answer->options));
  SAPWOOD_TRY(read_if(request, "snapshot_milliseconds", 0, 3'600'000, snapshot_milliseconds));
  if (request.has("messages") == request.has("prompt")) {
    return request.error("messages", "give either messages or prompt");
  }
  const auto document = nlohmann::ordered_json::parse(payload, nullptr, false);
  if (request.has("messages")) {
    SAPWOOD_TRY(check_messages(request, &answer->text_bytes));
    answer->messages = chat::Value::of(document.at("messages"));
  } else {
    SAPWOOD_TRY(request.read("prompt", &answer->prompt));
    answer->text_bytes = answer->prompt.size();
  }
  SAPWOOD_TRY(read_profile(request, document, answer));
  if (request.has("variables")) {
    JsonObject variables;
    SAPWOOD_TRY(request.read("variables", &variables));
    answer->variables = chat::Value::of(document.at("variables")).dictionary();
  }
  if (!request.has("stop")) return Status::okay();
  const auto& stops = document.at("stop");
  const auto fits = [](const nlohmann::ordered_json& stop) {
    return stop.is_string() && !stop.get_ref<const std::string&>().empty() &&
           stop.get_ref<const std::string&>().size() <= kLongestStop;
  };
  if (!stops.is_array() || stops.size() > kMostStops ||
      !std::all_of(stops.begin(), stops.end(), fits)) {
    return request.error("stop", "expected at most " + std::to_string(kMostStops) +
                                     " texts of 1 to " + std::to_string(kLongestStop) + " bytes");
  }
  answer->stops = stops.get<std::vector<std::string>>();
  return Status::okay();
}

}  // namespace

Status read_id(const JsonObject& request, int64_t* id) {
  return as_argument(request.read("id", int64_t{1}, kMaxRequestId, id));
}

Status read_load(const JsonObject& request, AnswererOptions* options) {
  const auto read = [&]() -> Status {
    SAPWOOD_TRY(request.read("bundle", &options->bundle));
    SAPWOOD_TRY(read_if(request, "host", &options->host));
    SAPWOOD_TRY(read_if(request, "threads", 0, 64, &options->threads));
    SAPWOOD_TRY(read_if(request, "verify_checksums", &options->verify_checksums));
    SAPWOOD_TRY(read_if(request, "context_length", 0, 1 << 20, &options->context_length));
    SAPWOOD_TRY(read_if(request, "max_tree_nodes", 0, 256, &options->max_tree_nodes));
    SAPWOOD_TRY(read_if(request, "drafter", &options->drafter));
    SAPWOOD_TRY(read_if(request, "draft", &options->draft));
    SAPWOOD_TRY(read_if(request, "ngram_table", &options->ngram_table));
    SAPWOOD_TRY(read_if(request, "measured_costs", &options->measured_costs));
    return read_if(request, "kv", &options->kv);
  };
  return as_argument(read());
}

Status read_generate(const JsonObject& request, std::string_view payload, AnswerRequest* answer,
                     int* snapshot_milliseconds) {
  return as_argument(read_generate_fields(request, payload, answer, snapshot_milliseconds));
}

Status read_thermal(const JsonObject& request, sapwood_readings* readings) {
  constexpr double kColdest = -273.15, kMost = 1000;
  sapwood_readings_init(readings, sizeof(*readings));
  const auto real = [&](const char* key, double low, double high, double* out) {
    float value = static_cast<float>(*out);
    SAPWOOD_TRY(read_if(request, key, low, high, &value));
    *out = static_cast<double>(value);
    return Status::okay();
  };
  const auto read = [&]() -> Status {
    SAPWOOD_TRY(real("celsius", kColdest, kMost, &readings->celsius));
    SAPWOOD_TRY(real("watts", 0, kMost, &readings->watts));
    SAPWOOD_TRY(real("battery_amperes", -kMost, kMost, &readings->battery_amperes));
    SAPWOOD_TRY(real("battery_volts", 0, kMost, &readings->battery_volts));
    SAPWOOD_TRY(real("memory_used", 0, 1, &readings->memory_used));
    SAPWOOD_TRY(read_if(request, "thermal_status", 0, 6, &readings->thermal_status));
    return read_if(request, "trim_level", 0, 80, &readings->trim_level);
  };
  return as_argument(read());
}

Status read_trace(const JsonObject& request, TraceRequest* trace) {
  const auto read = [&]() -> Status {
    SAPWOOD_TRY(read_if(request, "events", 0, TraceRing::kMostEvents, &trace->events));
    SAPWOOD_TRY(read_if(request, "file", &trace->file));
    if (request.has("events") == request.has("file")) {
      return request.error("events", "give either events or file");
    }
    return Status::okay();
  };
  return as_argument(read());
}

nlohmann::json stats_json(const sapwood_stats& stats, const LoadedFacts& facts,
                          double first_token_seconds, double celsius) {
  nlohmann::json json = {
      {"mode", sapwood_mode_name(stats.mode)},
      {"verifier", sapwood_verifier_name(stats.verifier)},
      {"drafter", facts.drafter},
      {"host", facts.host},
      {"kernels", kernels().name},
      {"threads", facts.threads},
      {"prompt_tokens", stats.prompt_tokens},
      {"reused_prompt_tokens", stats.reused_prompt_tokens},
      {"emitted_tokens", stats.emitted_tokens},
      {"steps", stats.steps},
      {"rows_verified", stats.rows_verified},
      {"drafted_tokens", stats.drafted_tokens},
      {"accepted_tokens", stats.accepted_tokens},
      {"mean_accepted_length", stats.mean_accepted_length},
      {"mean_draft_slots", stats.mean_draft_slots},
      {"peak_draft_slots", stats.peak_draft_slots},
      {"peak_kv_slots", stats.peak_kv_slots},
      {"beta", stats.beta},
      {"prefill_seconds", stats.prefill_seconds},
      {"decode_seconds", stats.decode_seconds},
      {"draft_seconds", stats.draft_seconds},
      {"first_token_seconds", first_token_seconds},
      {"tokens_per_second", stats.tokens_per_second},
      {"prompt_tokens_per_second", stats.prompt_tokens_per_second},
      {"cost_curve", stats.tuned_costs != 0 ? "tuned" : "learned"},
      {"strategy", sapwood_strategy_name(stats.strategy)},
      {"strategy_reason", sapwood_reason_name(stats.strategy_reason)},
      {"strategy_changes", stats.strategy_changes},
      {"recent_tokens_per_second", stats.recent_tokens_per_second},
      {"recent_accepted_length", stats.recent_accepted_length},
      {"tree_nodes", stats.tree_nodes},
      {"tree_depth", stats.tree_depth},
      {"kv_bytes", stats.kv_bytes},
      {"soft_fallbacks", stats.soft_fallbacks},
      {"hard_fallbacks", stats.hard_fallbacks},
      {"temperature_celsius", nullptr},
      {"heat", sapwood_heat_name(stats.heat)},
      {"heat_reason", sapwood_reason_name(stats.heat_reason)},
      {"memory_pressure", sapwood_memory_pressure_name(stats.memory_pressure)},
  };
  if (!std::isnan(celsius)) json["temperature_celsius"] = celsius;
  return json;
}

nlohmann::json tree_json(const std::vector<TreeNode>& nodes) {
  nlohmann::json list = nlohmann::json::array();
  for (const TreeNode& node : nodes) {
    list.push_back({{"text", node.text},
                    {"parent", node.parent},
                    {"depth", node.depth},
                    {"path_acceptance", node.path_acceptance},
                    {"accepted", node.accepted}});
  }
  return list;
}

}  // namespace sapwood
