// Adapting how much is drafted to how it goes: MATH.md, section 7.
//
// Falling back and the length of chains are for modes that have no budget (chain, fixed): a dynamic
// tree is sized by what it is expected to bring, which goes down by itself when guesses fail.
// Everything here looks at finished steps only, so it may choose what the next one drafts under
// every verifier.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sapwood {

// A step that drafted and accepted nothing -> the next one drafts a chain (soft). kFailures such
// steps in a row -> plain decoding for a cool-down that doubles on relapse and starts anew on
// success (hard).
class Fallback {
 public:
  static constexpr int kFailures = 2;
  static constexpr int kFirstCoolDown = 8;  // tokens
  static constexpr int kLongestCoolDown = 256;

  enum class Plan { kAsAsked, kChain, kPlain };

  void start() { *this = Fallback(); }
  Plan plan() const;
  // A step drafted and accepted so many tokens, and emitted so many.
  void observe(int drafted, int accepted, int emitted);

  int64_t soft() const { return soft_; }  // how often each was chosen
  int64_t hard() const { return hard_; }

 private:
  int failures_ = 0;
  int cooling_ = 0;                 // tokens left of a cool-down
  int cool_down_ = kFirstCoolDown;  // length of the next one
  int64_t soft_ = 0;
  int64_t hard_ = 0;
};

// What an adapting chain takes its length from.
enum class LengthRule {
  kWindow,   // the share of its guesses that was accepted lately: ChainLength
  kEntropy,  // how certain the draft is at this position: draft_length(), tree/controller.h
};
std::optional<LengthRule> parse_length_rule(std::string_view name);  // "window", "entropy"
std::string_view length_rule_name(LengthRule rule);

// The length of a chain by the share of its guesses that was accepted lately: above kLonger one
// more, below kShorter one less.
class ChainLength {
 public:
  static constexpr int kWindow = 5;  // steps
  static constexpr double kLonger = 0.85;
  static constexpr double kShorter = 0.6;

  void start(int length, int longest);
  int length() const { return length_; }
  void observe(int drafted, int accepted);

 private:
  struct Step {
    int drafted = 0;
    int accepted = 0;
  };
  std::array<Step, kWindow> steps_{};
  int next_ = 0;
  int seen_ = 0;  // since the length last changed
  int length_ = 1;
  int longest_ = 1;
};

// beta <- clip(beta (1 + eta (L_target / L_mean - 1))), L_mean over the last kWindow steps: prunes
// more (MATH.md, section 3: the pruned share is beta times the confidence) while steps are shorter
// than wanted, and keeps more while they are longer.
class BetaTuner {
 public:
  static constexpr int kWindow = 5;
  static constexpr double kTarget = 3.5;  // emitted tokens a step
  static constexpr double kRate = 0.1;
  static constexpr double kLowest = 0.02;  // of beta, so that it can find its way back
  static constexpr double kHighest = 1;

  explicit BetaTuner(double beta, double lowest = kLowest, double highest = kHighest);
  double beta() const { return beta_; }
  void observe(int emitted);

 private:
  double beta_;
  double lowest_;
  double highest_;
  std::array<int, kWindow> emitted_{};
  int next_ = 0;
  int seen_ = 0;
};

}  // namespace sapwood
