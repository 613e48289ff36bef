// What kind of answer a prompt asks for.

#include "engine/scenario.h"

#include "bindings.h"

namespace sapwood::python {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (int s = 0; s < kScenarios; ++s) all.emplace_back(scenario_name(static_cast<Scenario>(s)));
  return all;
}

std::vector<int> features_of(std::string_view prompt) {
  const ScenarioFeatures features(prompt);
  std::vector<int> present;
  for (int i = 0; i < ScenarioFeatures::kCount; ++i) {
    if (features.present()[static_cast<size_t>(i)]) present.push_back(i);
  }
  return present;
}

std::pair<std::optional<std::string>, std::vector<double>> guess(std::string_view prompt) {
  const ScenarioGuess guess = guess_scenario(ScenarioFeatures(prompt));
  std::optional<std::string> name;
  if (guess.sure()) name = std::string(scenario_name(guess.scenario));
  return {std::move(name), {guess.probability.begin(), guess.probability.end()}};
}

std::tuple<int, int, float> template_of_name(std::string_view name) {
  const std::optional<Scenario> scenario = parse_scenario(name);
  if (!scenario) raise_invalid("there is no scenario \"" + std::string(name) + '"');
  const ScenarioTemplate& begin = template_of(*scenario);
  return {begin.chain_length, begin.fixed_nodes, begin.beta};
}

}  // namespace

void bind_scenario(nb::module_& module) {
  module.attr("SCENARIO_WORDS") = ScenarioFeatures::kWords;
  module.attr("SCENARIO_FEATURES") = ScenarioFeatures::kCount;
  module.def("scenario_names", &names);
  module.def("scenario_features", &features_of, nb::arg("prompt"),
             "Which features a prompt has, ascending: below SCENARIO_WORDS words and pairs of "
             "words, from there on its shape, below SCENARIO_FEATURES.");
  module.def("guess_scenario", &guess, nb::arg("prompt"),
             "The likeliest scenario by name, None if that is not likely enough to act upon, and "
             "the probability of each.");
  module.def("scenario_template", &template_of_name, nb::arg("name"),
             "What speculation begins with: length of chains, nodes of fixed trees, beta.");
}

}  // namespace sapwood::python
