// The latest steps of an answer: how fast it is going now.
#pragma once

#include <algorithm>
#include <array>

namespace sapwood {

class RecentSteps {
 public:
  static constexpr int kSteps = 16;

  void observe(int emitted, double seconds) {
    emitted_[next_] = emitted;
    seconds_[next_] = seconds;
    next_ = (next_ + 1) % kSteps;
    seen_ = std::min(seen_ + 1, kSteps);
  }

  double tokens_per_second() const {
    double seconds = 0;
    for (int i = 0; i < seen_; ++i) seconds += seconds_[i];
    return seconds > 0 ? emitted() / seconds : 0;
  }
  double accepted_length() const {  // emitted tokens a step; 0 before the first
    return seen_ > 0 ? static_cast<double>(emitted()) / seen_ : 0;
  }

 private:
  int emitted() const {
    int sum = 0;
    for (int i = 0; i < seen_; ++i) sum += emitted_[i];
    return sum;
  }

  std::array<int, kSteps> emitted_{};
  std::array<double, kSteps> seconds_{};
  int next_ = 0;
  int seen_ = 0;
};

}  // namespace sapwood
