// The clock that everything is timed by: it never goes back.
#pragma once

#include <chrono>

namespace sapwood {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace sapwood
