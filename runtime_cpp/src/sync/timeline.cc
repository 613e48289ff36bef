#include "sync/timeline.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <string>

#include "base/pause.h"

namespace sapwood {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);

// As long as a wake-up takes: longer waits are cheaper asleep.
constexpr int kSpinsBeforeSleep = 2048;
constexpr int kSpinsBetweenLooks = 64;  // at the clock

// Sleeps while `word` is `seen`, until the deadline on the steady clock. May return early.
void futex_wait(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  timespec until = {};
  const timespec* limit = nullptr;
  if (deadline != kNoDeadline) {
    const int64_t nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
    until.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
    until.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
    limit = &until;
  }
  // With a bit set the time is absolute, and without FUTEX_CLOCK_REALTIME it is CLOCK_MONOTONIC's,
  // which is what steady_clock reads.
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_BITSET_PRIVATE, seen, limit,
            nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

Status refused_signal(uint64_t present, uint64_t value) {
  return Status(Code::kInvalidArgument, "a timeline at " + std::to_string(present) +
                                            " cannot be signalled " + std::to_string(value) +
                                            "; values only rise");
}

Wait HostTimeline::wait(uint64_t value, Deadline deadline) {
  const bool patient = most_spins_.count() > 0;
  const Deadline begin = patient ? std::chrono::steady_clock::now() : Deadline::min();
  const Deadline sleeps_at = begin + spins_.load(std::memory_order_relaxed);
  for (int spins = 0;; ++spins) {
    if (this->value() >= value) {
      if (patient) was_worth(true);
      return Wait::kReached;
    }
    if (abandoned_.load(std::memory_order_acquire)) break;
    if (spins % kSpinsBetweenLooks == 0) {
      if (is_past(deadline)) return Wait::kMissed;
      if (spins >= kSpinsBeforeSleep && is_past(sleeps_at)) break;
    }
    pause();
  }
  // Sequentially consistent with wake(): either the change is seen here, or the sleeper is seen
  // there.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  Wait outcome = Wait::kReached;
  for (;;) {
    const uint32_t changes = changes_.load(std::memory_order_seq_cst);
    if (this->value() >= value) break;
    if (abandoned_.load(std::memory_order_acquire)) {
      // The last signal may have come just before it was abandoned.
      if (this->value() < value) outcome = Wait::kAbandoned;
      break;
    }
    if (is_past(deadline)) {
      outcome = Wait::kMissed;
      break;
    }
    futex_wait(changes_, changes, deadline);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  // A deadline that was missed says nothing of how soon the value comes.
  if (patient && outcome == Wait::kReached) was_worth(!is_past(begin + most_spins_));
  return outcome;
}

// Several waiters may overwrite what another one found: any of it will do.
void HostTimeline::was_worth(bool spinning) {
  const auto spins = spins_.load(std::memory_order_relaxed);
  spins_.store(spinning ? std::min(most_spins_, spins + most_spins_ / 16) : spins / 2,
               std::memory_order_relaxed);
}

Status HostTimeline::signal(uint64_t value) {
  uint64_t present = value_.load(std::memory_order_relaxed);
  do {
    if (abandoned_.load(std::memory_order_acquire)) {
      return Status(Code::kCancelled, "the timeline was abandoned");
    }
    if (value <= present) return refused_signal(present, value);
  } while (!value_.compare_exchange_weak(present, value, std::memory_order_release,
                                         std::memory_order_relaxed));
  wake();
  return Status::okay();
}

void HostTimeline::abandon() {
  abandoned_.store(true, std::memory_order_release);
  wake();
}

void HostTimeline::wake() {
  changes_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&changes_), FUTEX_WAKE_PRIVATE, INT_MAX,
              nullptr, nullptr, 0);
  }
}

}  // namespace sapwood
