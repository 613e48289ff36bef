// A state that rises at once and falls step by step: no flapping near a threshold.
#pragma once

#include <algorithm>

namespace sapwood {

// It falls by one after nothing has been demanded for a while; if it had to rise again soon after,
// that while doubles, so that a device near a threshold does not go back and forth.
class Hysteresis {
 public:
  // calm_seconds: without a demand, before a state is left; doubles up to most_calm_seconds.
  Hysteresis(double calm_seconds, double most_calm_seconds)
      : calm_seconds_(calm_seconds), most_calm_seconds_(most_calm_seconds) {}

  int state() const { return state_; }  // 0: nothing was demanded lately

  // demanded: the state that is called for at a time, which does not go back. Whether the state is
  // another now.
  bool observe(double seconds, int demanded) {
    if (demanded > state_) {
      const bool relapse =
          fell_at_ >= 0 && seconds - fell_at_ < 2 * std::max(needed_, calm_seconds_);
      needed_ = relapse ? std::min(2 * std::max(needed_, calm_seconds_), most_calm_seconds_)
                        : calm_seconds_;
      state_ = demanded;
      calm_since_ = -1;
      return true;
    }
    if (demanded > 0 || state_ == 0) {
      calm_since_ = -1;
      return false;
    }
    if (calm_since_ < 0) calm_since_ = seconds;
    if (seconds - calm_since_ < needed_) return false;
    --state_;
    calm_since_ = seconds;  // the next fall needs calm of its own
    fell_at_ = seconds;
    return true;
  }

 private:
  double calm_seconds_;
  double most_calm_seconds_;
  int state_ = 0;
  double calm_since_ = -1;  // below 0: it is not calm
  double needed_ = 0;       // seconds of calm before the next fall; 0: the first
  double fell_at_ = -1;     // below 0: never
};

}  // namespace sapwood
