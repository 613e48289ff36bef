// Why less is drafted than was asked for, or as much again: what traces and statistics say of every
// change of the governor's and of the strategy.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sapwood {

enum class Reason : uint8_t {
  kNone,
  kTemperature,
  kPower,          // above the budget
  kThermalStatus,  // the platform's own word
  kMemoryPressure,
  kRecovered,       // heat or memory pressure has eased
  kAcceptedLength,  // steps emit too few tokens
  kLatency,         // tokens take longer than the target
  kNotFaster,       // what was tried
  kComparedAgain,   // what is used in place of what was asked for, with that
  kGuessesFailed,   // several steps in a row accepted nothing
  kDeadline,        // a stage hung, or a draft failed
};
inline constexpr int kReasons = 12;

// In words, for people and for machines alike; "" for kNone.
inline std::string_view reason_name(Reason reason) {
  constexpr std::array<std::string_view, kReasons> kNames = {"",
                                                             "temperature",
                                                             "power",
                                                             "thermal status",
                                                             "memory pressure",
                                                             "recovered",
                                                             "accepted length",
                                                             "latency",
                                                             "not faster",
                                                             "compared again",
                                                             "guesses failed",
                                                             "missed deadline"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace sapwood
