#include "engine_process/generate_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "engine_process/answerer.h"
#include "engine_process/requests.h"
#include "trace/trace_ring.h"

namespace sapwood {
namespace {

// Options become the fields of the protocol's requests, so that they are checked in one place.
struct Command {
  nlohmann::json load = nlohmann::json::object();
  nlohmann::json generate = nlohmann::json::object();
  bool raw = false;
  bool ids = false;   // also print the ids
  std::string trace;  // a file to write what was done into; "": none
};

nlohmann::json number_or_text(const std::string& text) {
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  return value.is_number() ? value : nlohmann::json(text);
}

Status parse(const std::vector<std::string>& arguments, Command* command) {
  constexpr std::string_view kOfLoad[] = {"bundle",         "host",    "threads", "context_length",
                                          "max_tree_nodes", "drafter", "draft",   "ngram_table",
                                          "measured_costs", "kv"};
  constexpr std::string_view kTexts[] = {"bundle", "prompt", "draft", "ngram_table",
                                         "measured_costs"};
  const auto among = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    if (!name.starts_with("--")) {
      // Not repeated: it may be a word of a prompt that lacks its quotation marks.
      return Status(Code::kInvalidArgument, "argument " + std::to_string(i + 1) +
                                                " is no option; --help lists them; does a text "
                                                "lack its quotation marks?");
    }
    name.erase(0, 2);
    for (char& c : name) c = c == '-' ? '_' : c;
    if (name == "raw" || name == "ids" || name == "ignore_eos" || name == "adapt") {
      if (name == "raw") command->raw = true;
      if (name == "ids") command->ids = true;
      if (name == "ignore_eos" || name == "adapt") command->generate[name] = true;
      continue;
    }
    if (++i == arguments.size()) {
      return Status(Code::kInvalidArgument, "--" + name + " needs a value");
    }
    if (name == "trace") {
      command->trace = arguments[i];
      continue;
    }
    nlohmann::json value =
        among(kTexts, name) ? nlohmann::json(arguments[i]) : number_or_text(arguments[i]);
    (among(kOfLoad, name) ? command->load : command->generate)[name] = std::move(value);
  }
  constexpr std::string_view kOfGenerate[] = {"prompt",
                                              "mode",
                                              "max_new_tokens",
                                              "temperature",
                                              "top_k",
                                              "top_p",
                                              "min_p",
                                              "repetition_penalty",
                                              "seed",
                                              "verifier",
                                              "chain_length",
                                              "fixed_nodes",
                                              "length_rule",
                                              "beta",
                                              "ignore_eos",
                                              "adapt",
                                              "profile",
                                              "least_accepted_length",
                                              "target_milliseconds"};
  for (const auto& [name, value] : command->generate.items()) {
    if (!among(kOfGenerate, name)) {
      return Status(Code::kInvalidArgument, "no such option: --" + name + "; --help lists them");
    }
  }
  if (!command->generate.contains("prompt")) {
    return Status(Code::kInvalidArgument, "--prompt is missing");
  }
  return Status::okay();
}

}  // namespace

const char* const kGenerateHelp = R"(
Options of generate, as in docs/engine-protocol.md:
  --bundle FOLDER --prompt TEXT [--raw]    (--raw: no chat template)
  --mode plain|chain|fixed|dynamic --max-new-tokens N --temperature T --seed N --threads N
  --top-k N --top-p P --min-p P --repetition-penalty R --verifier V --chain-length N
  --fixed-nodes N --adapt --length-rule R --beta B --profile P --ignore-eos
  --least-accepted-length N --target-milliseconds N --host H --kv float16|int8
  --context-length N --max-tree-nodes N --drafter D --draft FOLDER
  --ngram-table FILE --measured-costs FILE
  --ids                                    (the answer's ids on standard error)
  --trace FILE                             (what was done and when, for ui.perfetto.dev)

  sapwood_engine generate --bundle smollm2 --prompt 'What is a tree?' --max-new-tokens 64
)";

Status generate_command(const std::vector<std::string>& arguments) {
  Command command;
  SAPWOOD_TRY(parse(arguments, &command));
  if (!command.raw) {
    command.generate["messages"] = {{{"role", "user"}, {"content", command.generate["prompt"]}}};
    command.generate.erase("prompt");
  }
  AnswererOptions options;
  SAPWOOD_TRY(read_load(JsonObject(command.load, "options"), &options));
  AnswerRequest request;
  int snapshots = 0;
  const std::string payload =
      command.generate.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const nlohmann::json fields = nlohmann::json::parse(payload);
  SAPWOOD_TRY(read_generate(JsonObject(fields, "options"), payload, &request, &snapshots));
  Result<std::unique_ptr<Answerer>> answerer = Answerer::open(options);
  if (!answerer.ok()) return answerer.status();
  Answerer& engine = *answerer.value();
  if (!command.trace.empty()) SAPWOOD_TRY(engine.start_trace(TraceRing::kMostEvents / 16));
  SAPWOOD_TRY(engine.answer(request, {[](int) { return true; },
                                      [](const std::string& text) {
                                        std::fwrite(text.data(), 1, text.size(), stdout);
                                        return std::fflush(stdout) == 0;
                                      }}));
  std::fputc('\n', stdout);
  if (!command.trace.empty()) SAPWOOD_TRY(engine.save_trace(command.trace, nullptr, nullptr));
  nlohmann::json stats =
      stats_json(engine.stats(), {engine.drafter(), engine.host(), engine.threads()},
                 engine.first_token_seconds(), std::nan(""));
  stats["stop_reason"] = engine.stop_reason();
  if (command.ids) stats["ids"] = engine.emitted_ids();
  std::fprintf(stderr, "%s\n", stats.dump().c_str());
  return Status::okay();
}

}  // namespace sapwood
