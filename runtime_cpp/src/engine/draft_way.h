// Where a drafter that runs a network does so, and which way is the fastest here.
//
//   in turns  | draft | target | draft | target |      on the session's thread
//   beside    the same on a thread of its own, for which the session waits
//   ahead     and while the target verifies, that thread looks beyond what is likeliest to come
//
// What the second unit takes from the target - memory bandwidth, a core that was not free after
// all - and what a hand-over takes is in what a step costs, so the choice is made by that alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sapwood {

// Whether the draft looks ahead while the target verifies.
enum class DoubleBuffer {
  kOff,
  kMeasured,  // the fastest of all ways, in turns too: DraftWayChoice
  kOn,
};
std::optional<DoubleBuffer> parse_double_buffer(std::string_view name);  // "off", "measured", "on"

enum class DraftWay { kInTurns, kBeside, kAhead };
inline constexpr int kDraftWays = 3;
std::string_view draft_way_name(DraftWay way);  // "in turns", "beside", "ahead"

// A trial of all ways in blocks of steps that take turns, since texts differ from one part to the
// next, then the cheapest by seconds a token until the next trial. In turns unless another way is
// cheaper by more than the standard error of what was measured: so the default is slower than
// drafting in turns by its trials at most. The longer a choice stands, the rarer they become; one
// that has become a quarter slower a step is tried anew at once.
class DraftWayChoice {
 public:
  static constexpr int kBlock = 8;   // steps of a way on end; the first is not counted, for
                                     // what was done ahead before it is still in it
  static constexpr int kBlocks = 2;  // of each way in a trial
  static constexpr int kTrial = kBlock * kBlocks * kDraftWays;
  static constexpr int kKept = 256;  // steps that go by the first trial
  static constexpr int kLongestKept = 2048;
  static constexpr int kWatched = 64;      // steps over which the kept way's pace is watched
  static constexpr double kSlower = 1.25;  // than in the trial: the conditions have changed

  DraftWay way() const;
  bool in_trial() const { return step_ < kTrial; }
  void observe(int emitted, double seconds);  // of a step that went as way() said

 private:
  // Of steps of t tokens and s seconds each.
  struct Sums {
    double steps = 0, tokens = 0, seconds = 0;
    double tokens_squared = 0, seconds_squared = 0, product = 0;

    void add(double step_tokens, double step_seconds);
    void fade();
    double seconds_a_token() const { return seconds / tokens; }
    double seconds_a_step() const { return seconds / steps; }
    double variance() const;  // of seconds_a_token(), a ratio of means
  };

  void decide();
  void watch(double seconds);

  std::array<Sums, kDraftWays> sums_;
  DraftWay kept_ = DraftWay::kInTurns;
  int step_ = 0;  // of the trial and what follows it
  int lasts_ = kKept;
  int watched_ = 0;
  double watched_seconds_ = 0;
};

}  // namespace sapwood
