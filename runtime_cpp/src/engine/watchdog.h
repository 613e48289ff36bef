// Deadlines of a step's stages, and what a missed one leads to.
//
// What can be given up, and where:
// - A draft that grows on the engine's thread is asked to stop: drafters look at
//   DraftRequest::deadline between passes. One that comes late all the same is used, since it is
//   there and late is all it is, and the next steps draft less. Nothing stops code that never comes
//   back to the thread that waits for it.
// - A draft that grows on a thread of its own (engine/draft_stage.h) is waited for until the
//   deadline and no longer. A thread cannot be stopped from outside: it is left behind with all
//   that it can write to, and the session drafts no more.
// - A pass of the target on our own threads stops between two layers (Model::set_deadline), but not
//   with one row, whose place nothing cheaper could take: late, that is reported. What a stopped
//   pass has written lies in slots that are freed.
// - A pass that waits for a device stops waiting.
// - Sampling and commit are a few microseconds of our own, and have none.
//
// A step whose pass was given up is done again with the root alone: nothing of it was emitted, so
// nothing is lost or repeated. Then less is drafted for a while - a chain, then nothing - and what
// was asked for is tried again, after twice as long each time that fails.
//
// Deadlines are far from what a stage is expected to take, by the cost curve and how this device
// has kept to it, and never below a floor: they are for what hangs, not for a noisy machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "engine/adaptation.h"
#include "engine/mode.h"
#include "sync/timeline.h"

namespace sapwood {

struct WatchdogOptions {
  double least_seconds = 1;  // the floor; 0: no deadlines. Tenfold until a pass has been measured
                             // and for a pass of one row.
  double factor = 20;        // times what a stage is expected to take, at least 1

  Status check() const;
};

class Watchdog {
 public:
  static constexpr int kFirstCalm = 16;      // steps without a miss before more is drafted again;
  static constexpr int kLongestCalm = 1024;  // doubles with every miss, up to this

  explicit Watchdog(const WatchdogOptions& options) : options_(options) {}

  // An answer begins. A drafter that hangs stays lost.
  void start(Mode asked);

  // How much may be drafted at present.
  Fallback::Plan plan() const { return lost_ ? Fallback::Plan::kPlain : plan_; }
  bool drafter_is_lost() const { return lost_; }

  // In seconds, infinite without deadlines. expected_ms: by the cost curve.
  double limit(double expected_ms) const;
  double limit_of_one_row(double expected_ms) const { return 10 * limit(expected_ms); }
  static Deadline after(double seconds);  // from now

  // A pass went through: what expectations are scaled by from here on.
  void passed(double expected_ms, double seconds);
  void step_done();

  // Each says so in report() and counts as missed.
  void draft_was_late(std::string_view drafter, double seconds, double limit);
  void draft_failed(std::string_view drafter, std::string_view why);  // nothing more in this answer
  void draft_hangs(std::string_view drafter, double limit);  // nothing more in this session
  void pass_was_late(int rows, double seconds, double limit);
  void pass_was_given_up(int rows, double limit);

  int64_t missed() const { return missed_; }             // in this answer
  const std::string& report() const { return report_; }  // the latest miss in words; empty: none

 private:
  void degrade(std::string what);

  const WatchdogOptions options_;
  double pace_ = 0;  // of this device against its cost curve; 0: not known yet
  Mode asked_ = Mode::kPlain;
  Fallback::Plan plan_ = Fallback::Plan::kAsAsked;
  bool failed_ = false;  // in this answer
  bool lost_ = false;
  int calm_ = kFirstCalm;
  int steps_since_miss_ = 0;
  int64_t missed_ = 0;
  std::string report_;
};

}  // namespace sapwood
