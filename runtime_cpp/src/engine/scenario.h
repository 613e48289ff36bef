// What kind of answer a prompt asks for, and what speculation begins with for each.
//
// A prompt is looked at once, before its answer: which words and pairs of words it holds, its
// punctuation, its length, lines and numbers. Every such feature is there or not; a table of 8-bit
// weights, fitted by scripts/make_scenario_weights on prompts that the project makes, turns them
// into a logistic regression. It takes microseconds, allocates nothing, and is the same on every
// machine. What it says chooses how much is drafted, never what is said.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string_view>

namespace sapwood {

enum class Scenario {
  kStructure,   // code, markup, tables, JSON: text of a strict form
  kReasoning,   // mathematics, puzzles: steps that follow from each other
  kCreativity,  // stories, poems, roles: hard to foresee
  kKnowledge,   // facts, explanations, summaries, translations
};
inline constexpr int kScenarios = 4;
std::optional<Scenario> parse_scenario(std::string_view name);  // "structure", "reasoning", ...
std::string_view scenario_name(Scenario scenario);

// What of a prompt the classifier looks at.
class ScenarioFeatures {
 public:
  static constexpr int kWords = 2048;  // words and pairs of words, hashed
  static constexpr int kShape = 72;    // punctuation, length, lines, numbers
  static constexpr int kCount = kWords + kShape;

  explicit ScenarioFeatures(std::string_view prompt);
  const std::bitset<kCount>& present() const { return present_; }

 private:
  void add_words(std::string_view text);
  void add_shape(std::string_view text);

  std::bitset<kCount> present_;
};

struct ScenarioGuess {
  Scenario scenario = Scenario::kKnowledge;  // the likeliest
  std::array<double, kScenarios> probability{};
  // Below this the guess is not acted upon.
  static constexpr double kSure = 0.5;
  bool sure() const { return probability[static_cast<size_t>(scenario)] >= kSure; }
};
ScenarioGuess guess_scenario(const ScenarioFeatures& features);

// What speculation begins with before it has seen how its guesses fare; GenerateOptions has the
// terms. Chosen by tokens a second of SmolLM2-135M over prompts of each scenario (the file that
// scripts/make_scenario_weights --suite writes, sapwood bench suite): the scenarios differ little,
// for what a row costs decides.
struct ScenarioTemplate {
  int chain_length;
  int fixed_nodes;
  float beta;
};
const ScenarioTemplate& template_of(Scenario scenario);

}  // namespace sapwood
