#include "engine/watchdog.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sapwood {
namespace {

constexpr double kUnmeasured = 10;   // floors, while nothing is known of this device
constexpr double kPaceMemory = 0.1;  // weight of the latest pass in the average
constexpr double kForEver = 1e9;     // seconds; a steady clock's nanoseconds hold ten times that

std::string in_milliseconds(double seconds) {
  return std::to_string(std::llround(seconds * 1e3)) + " ms";
}

std::string rows_in_words(int rows) {
  return rows == 1 ? "one row" : std::to_string(rows) + " rows";
}

}  // namespace

Status WatchdogOptions::check() const {
  if (least_seconds >= 0 && factor >= 1) return Status::okay();
  return Status(
      Code::kInvalidArgument,
      "a deadline cannot be shorter than 0 seconds or than what a stage is expected to take");
}

void Watchdog::start(Mode asked) {
  asked_ = asked;
  plan_ = Fallback::Plan::kAsAsked;
  failed_ = false;
  calm_ = kFirstCalm;
  steps_since_miss_ = 0;
  missed_ = 0;
  if (!lost_) report_.clear();
}

double Watchdog::limit(double expected_ms) const {
  if (!(options_.least_seconds > 0)) return std::numeric_limits<double>::infinity();
  if (pace_ == 0) return kUnmeasured * options_.least_seconds;
  return std::max(options_.least_seconds, options_.factor * pace_ * expected_ms / 1e3);
}

Deadline Watchdog::after(double seconds) {
  if (!(seconds < kForEver)) return kNoDeadline;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::duration<double>(std::max(seconds, 0.0)));
}

void Watchdog::passed(double expected_ms, double seconds) {
  if (!(expected_ms > 0)) return;
  const double pace = seconds * 1e3 / expected_ms;
  pace_ = pace_ == 0 ? pace : pace_ + (pace - pace_) * kPaceMemory;
}

void Watchdog::step_done() {
  if (plan_ == Fallback::Plan::kAsAsked || failed_ || lost_ || ++steps_since_miss_ < calm_) return;
  steps_since_miss_ = 0;
  plan_ = plan_ == Fallback::Plan::kPlain && asked_ != Mode::kChain ? Fallback::Plan::kChain
                                                                    : Fallback::Plan::kAsAsked;
}

void Watchdog::degrade(std::string what) {
  ++missed_;
  if (plan_ != Fallback::Plan::kAsAsked || missed_ > 1) calm_ = std::min(2 * calm_, kLongestCalm);
  steps_since_miss_ = 0;
  const bool to_plain = failed_ || lost_ || plan_ != Fallback::Plan::kAsAsked ||
                        asked_ == Mode::kChain || asked_ == Mode::kPlain;
  plan_ = to_plain ? Fallback::Plan::kPlain : Fallback::Plan::kChain;
  report_ = std::move(what);
  if (asked_ == Mode::kPlain) return;
  report_ += lost_      ? "; no drafting in this session"
             : failed_  ? "; no drafting in this answer"
             : to_plain ? "; no drafting for a while"
                        : "; a chain for a while";
}

void Watchdog::draft_was_late(std::string_view drafter, double seconds, double limit) {
  degrade("the drafter " + std::string(drafter) + " took " + in_milliseconds(seconds) + " where " +
          in_milliseconds(limit) + " are allowed");
}

void Watchdog::draft_failed(std::string_view drafter, std::string_view why) {
  failed_ = true;
  degrade("the drafter " + std::string(drafter) + " failed: " + std::string(why));
}

void Watchdog::draft_hangs(std::string_view drafter, double limit) {
  lost_ = true;
  degrade("the drafter " + std::string(drafter) + " did not answer within " +
          in_milliseconds(limit));
}

void Watchdog::pass_was_late(int rows, double seconds, double limit) {
  degrade("a pass over " + rows_in_words(rows) + " took " + in_milliseconds(seconds) + " where " +
          in_milliseconds(limit) + " are allowed");
}

void Watchdog::pass_was_given_up(int rows, double limit) {
  degrade("a pass over " + rows_in_words(rows) + " was given up after " + in_milliseconds(limit));
}

}  // namespace sapwood
