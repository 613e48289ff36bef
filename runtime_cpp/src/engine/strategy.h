// What a step drafts in place of what was asked for, and why. The text is the same whatever is
// chosen: only finished steps and the device are looked at.
#pragma once

#include <array>
#include <string_view>

#include "base/status.h"
#include "engine/mode.h"
#include "engine/reason.h"

namespace sapwood {

// From what drafts most to what drafts nothing.
enum class Strategy {
  kAsAsked,
  kGreedyTree,  // best first, as far as it pays, whatever the mode
  kNarrow,      // as asked, half as wide and with half as many nodes
  kChain,
  kPlain,
};
inline constexpr int kStrategies = 5;
std::string_view strategy_name(Strategy strategy);  // "as asked", "greedy tree", "narrow", ...

struct StrategyChoice {
  Strategy strategy = Strategy::kAsAsked;
  Reason reason = Reason::kNone;  // of the latest change to it

  // Where it is more than that, no more than this.
  void at_most(Strategy most, Reason why) {
    if (most > strategy) *this = {most, why};
  }
};

struct StrategyOptions {
  // In an answer whose steps emit fewer tokens than this: a chain or nothing, whichever turns out
  // to be faster. 0: it is not looked at.
  double least_accepted_length = 0;
  // In one whose tokens take longer than this, in milliseconds: a greedy tree, in place of a chain
  // or a fixed tree, if that is faster. 0: there is no target.
  double target_milliseconds = 0;

  Status check() const;
};

// Switches between strategies by what they are measured to bring. A tree that is sized by its
// expected gain believes its draft, and this believes the clock: what was asked for is watched for
// a window, what might do better is tried for as many steps each, and the fastest is kept for a
// while, as long as it stays faster. Where nothing was, the next trial waits for longer and longer:
// finding out costs little, and staying is never given up for less.
class StrategySwitch {
 public:
  static constexpr int kWindow = 16;       // steps of a trial, and of what it is compared with
  static constexpr double kMargin = 0.05;  // by which a strategy must be faster than what was asked
  static constexpr int kHeld = 256;        // steps with what was faster, at most
  static constexpr int kFirstRest = 256;   // steps without a trial where nothing was; doubles with
  static constexpr int kLongestRest = 4096;  // every such trial, up to this

  // An answer begins.
  void start(Mode asked, const StrategyOptions& options);

  StrategyChoice choice() const { return {tried_, reason_}; }

  // A step that went as choice() said drafted and emitted so many tokens and took so long.
  void observe(int drafted, int emitted, double seconds);
  // A step went otherwise, for a reason of somebody else's.
  void interrupted();

 private:
  // Over the steps since it was cleared.
  struct Sum {
    int steps = 0;
    int drafted = 0;
    int emitted = 0;
    double seconds = 0;
    double seconds_a_token() const { return emitted > 0 ? seconds / emitted : 0; }
  };

  void look();      // at a window of what was asked for
  void try_next();  // of what might be faster; after the last the fastest is held
  void give_up();   // nothing is faster, or not any more: no trial for a while
  void as_asked(Reason why);

  Mode asked_ = Mode::kPlain;
  StrategyOptions options_;
  Strategy tried_ = Strategy::kAsAsked;
  Reason reason_ = Reason::kNone;
  Reason trigger_ = Reason::kNone;
  Sum sum_;
  double asked_seconds_ = 0;  // a token, of the latest window as asked
  std::array<Strategy, kStrategies> candidates_{};
  int candidate_count_ = 0;
  int trial_ = 0;  // which of them is tried
  Strategy fastest_ = Strategy::kAsAsked;
  double fastest_seconds_ = 0;
  bool held_ = false;
  int held_steps_ = 0;
  int rest_ = 0;  // steps left without a trial
  int next_rest_ = kFirstRest;
};

}  // namespace sapwood
