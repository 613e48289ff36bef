// The C interface: what speculation begins with, by what a prompt asks for.
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/c_api.h"
#include "engine/scenario.h"

namespace sapwood::c_api {
namespace {

constexpr size_t kNeeded = offsetof(sapwood_generate_options, beta) + sizeof(float);

Status apply_profile(std::string_view profile, std::string_view prompt,
                     sapwood_generate_options* options, std::string_view* name) {
  if (profile == "off") return Status::okay();
  std::optional<Scenario> scenario = parse_scenario(profile);
  if (!scenario && profile != "auto") {
    return Status(Code::kInvalidArgument,
                  "profile must be off, auto, structure, reasoning, creativity or knowledge, not " +
                      printable(profile));
  }
  if (!scenario) {
    const ScenarioGuess guess = guess_scenario(ScenarioFeatures(prompt));
    if (!guess.sure()) return Status::okay();
    scenario = guess.scenario;
  }
  const ScenarioTemplate& begin = template_of(*scenario);
  options->chain_length = begin.chain_length;
  options->fixed_nodes = begin.fixed_nodes;
  options->beta = begin.beta;
  *name = scenario_name(*scenario);
  return Status::okay();
}

}  // namespace
}  // namespace sapwood::c_api

using sapwood::c_api::guarded;
using sapwood::c_api::missing;

extern "C" {

sapwood_code sapwood_generate_options_profile(sapwood_generate_options* options,
                                              const char* profile, const char* prompt,
                                              size_t prompt_bytes, const char** scenario) {
  return guarded([&] {
    std::string_view name = "";
    if (scenario != nullptr) *scenario = name.data();
    if (options == nullptr || options->size < sapwood::c_api::kNeeded) return missing("options");
    if (profile == nullptr) return missing("profile");
    if (prompt == nullptr && prompt_bytes > 0) return missing("prompt");
    const sapwood::Status applied =
        sapwood::c_api::apply_profile(profile, {prompt, prompt_bytes}, options, &name);
    if (scenario != nullptr) *scenario = name.data();  // of a literal
    return applied;
  });
}

}  // extern "C"
