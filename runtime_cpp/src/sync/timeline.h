// A number that only rises, which stages wait for and raise: how they take turns.
//
//   HostTimeline drafted;
//   // the draft's thread                     // the target's thread
//   grow(tree);                               if (drafted.wait(step, deadline) != Wait::kReached)
//   ... SAPWOOD_TRY(drafted.signal(step));        verify(tree);
//
// What a thread did before signal(n) is seen by whoever's wait(n) was reached. The interface is
// that of a Vulkan timeline semaphore (vulkan/vulkan_timeline.h), so that a stage need not know
// whether the one before it runs on the processor or on a device.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/status.h"

namespace sapwood {

using Deadline = std::chrono::steady_clock::time_point;
inline constexpr Deadline kNoDeadline = Deadline::max();
inline bool is_past(Deadline deadline) {
  return deadline != kNoDeadline && std::chrono::steady_clock::now() >= deadline;
}

enum class Wait {
  kReached,    // the timeline is at the value or beyond
  kMissed,     // the deadline passed first: the watchdog's event
  kAbandoned,  // nobody will ever signal again: abandon() was called, or the device was lost
};

class Timeline {
 public:
  virtual ~Timeline() = default;

  virtual uint64_t value() const = 0;

  // Returns as soon as value() >= `value`, which also holds of an abandoned timeline, or when the
  // deadline passes; one in the past only looks. Any number of threads may wait. No allocation.
  [[nodiscard]] virtual Wait wait(uint64_t value, Deadline deadline) = 0;

  // Raises the value and wakes whom it concerns. kInvalidArgument, and nothing happens, unless
  // `value` is above the present one; kCancelled on an abandoned timeline.
  virtual Status signal(uint64_t value) = 0;

  // Wakes everyone who waits for more than was signalled, now and for ever. Safe to call twice.
  virtual void abandon() = 0;
};

// The error of a signal that would not rise.
Status refused_signal(uint64_t present, uint64_t value);

// On a futex: waits spin for a moment, then sleep; signals of a timeline that nobody sleeps on make
// no system call. A waiter that has a core to itself may be given longer to spin: being woken takes
// tens of microseconds, and more on a virtual machine.
class HostTimeline final : public Timeline {
 public:
  explicit HostTimeline(uint64_t value = 0, std::chrono::microseconds spins = {})
      : value_(value), most_spins_(spins), spins_(spins) {}
  HostTimeline(const HostTimeline&) = delete;
  HostTimeline& operator=(const HostTimeline&) = delete;

  uint64_t value() const override { return value_.load(std::memory_order_acquire); }
  Wait wait(uint64_t value, Deadline deadline) override;
  Status signal(uint64_t value) override;
  void abandon() override;

 private:
  void wake();
  void was_worth(bool spinning);

  alignas(64) std::atomic<uint64_t> value_;
  std::atomic<bool> abandoned_{false};
  // Beyond a short while, before a waiter sleeps: at most, and as it has been worth so far. On a
  // machine that has no core to spare, what is waited for would come sooner without.
  const std::chrono::microseconds most_spins_;
  std::atomic<std::chrono::microseconds> spins_;
  // What sleepers sleep on: moves with every signal, since a futex has 32 bits and a value 64.
  alignas(64) std::atomic<uint32_t> changes_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace sapwood
