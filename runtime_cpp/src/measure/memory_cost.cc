#include "measure/memory_cost.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "memory/kv_slot_bitmap.h"
#include "memory/unified_pool.h"
#include "sync/timeline.h"

namespace sapwood {
namespace {

constexpr int kWarmUp = 200;  // calls before any is counted
constexpr std::chrono::microseconds kUntilParked{1000};
constexpr double kUntilSpinning = 1e-6;  // seconds

double nanoseconds_since(Clock::time_point begin) { return seconds_since(begin) * 1e9; }

double percentile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<long>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// What the clock adds to everything that is timed with it.
double clock_nanoseconds() {
  std::vector<double> empty(2001);
  for (double& each : empty) {
    const Clock::time_point begin = Clock::now();
    each = nanoseconds_since(begin);
  }
  return percentile(empty, 0.5);
}

Latency latency_of(std::vector<double>& nanoseconds) {
  const double clock = clock_nanoseconds();
  return {std::max(percentile(nanoseconds, 0.5) - clock, 0.0),
          std::max(percentile(nanoseconds, 0.99) - clock, 0.0)};
}

// How long `call` took, kept unless it is one of the first.
template <typename Call>
void time_call(int round, std::vector<double>& into, Call&& call) {
  const Clock::time_point begin = Clock::now();
  call();
  const double taken = nanoseconds_since(begin);
  if (round >= kWarmUp) into.push_back(taken);
}

Status no_rounds() { return Status(Code::kInvalidArgument, "latencies are of at least one round"); }

// The calling thread stays on one of the cores that it may use, the first or the last, until this
// goes. Where two threads share a core a wake-up is another thing.
class OnCore {
 public:
  explicit OnCore(bool first) {
    if (::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    int core = -1;
    for (int each = 0; each < CPU_SETSIZE; ++each) {
      if (CPU_ISSET(each, &before_) && (core < 0 || !first)) core = each;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pinned_ = ::sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OnCore() {
    if (pinned_) ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  OnCore(const OnCore&) = delete;
  OnCore& operator=(const OnCore&) = delete;

 private:
  cpu_set_t before_;
  bool pinned_ = false;
};

// Nothing around the system calls: what a thread that sleeps can be woken in at best.
class BareFutex {
 public:
  void wait(uint32_t value) {
    for (uint32_t seen = value_; seen != value; seen = value_) {
      ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAIT_PRIVATE, seen, nullptr,
                nullptr, 0);
    }
  }
  void wake(uint32_t value) {
    value_ = value;
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&value_), FUTEX_WAKE_PRIVATE, 1, nullptr,
              nullptr, 0);
  }

 private:
  std::atomic<uint32_t> value_{0};
};

}  // namespace

Result<SlotLatency> slot_latency(int slots, int count, int threads, int rounds) {
  if (rounds < 1) return no_rounds();
  if (count < 1 || threads < 1 || slots < 8 || slots / 2 < count * threads) {
    return Status(Code::kInvalidArgument,
                  "of that many slots each thread must find as many free as it takes");
  }
  KvSlotBitmap bitmap(slots);
  std::vector<int32_t> text(static_cast<size_t>(slots / 4));
  if (!bitmap.allocate(text)) return Status(Code::kInternal, "a new bitmap has slots");
  // Others hold an eighth here and there: take the rest, and give all of it back but every sixth.
  std::vector<int32_t> rest(static_cast<size_t>(bitmap.available()));
  if (!bitmap.allocate(rest)) return Status(Code::kInternal, "a bitmap has what it says");
  std::vector<int32_t> given_back;
  for (size_t i = 0; i < rest.size(); ++i) {
    // In stretches, as texts leave them: a run of `count` is often found and not always.
    if (i / 32 % 6 != 0) given_back.push_back(rest[i]);
  }
  SAPWOOD_TRY(bitmap.free(given_back));

  std::vector<std::vector<double>> allocated(static_cast<size_t>(threads)), freed(allocated);
  std::vector<Status> outcome(static_cast<size_t>(threads), Status::okay());
  const auto work = [&](size_t thread) {
    std::vector<int32_t> mine(static_cast<size_t>(count));
    allocated[thread].reserve(static_cast<size_t>(rounds));
    freed[thread].reserve(static_cast<size_t>(rounds));
    for (int round = 0; round < kWarmUp + rounds && outcome[thread].ok(); ++round) {
      bool found = false;
      time_call(round, allocated[thread], [&] { found = bitmap.allocate(mine); });
      if (!found) {
        outcome[thread] = Status(Code::kInternal, "a bitmap ran out of slots that were free");
        break;
      }
      time_call(round, freed[thread], [&] { outcome[thread] = bitmap.free(mine); });
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < static_cast<size_t>(threads); ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  for (const Status& each : outcome) SAPWOOD_TRY(each);
  for (size_t t = 1; t < static_cast<size_t>(threads); ++t) {
    allocated[0].insert(allocated[0].end(), allocated[t].begin(), allocated[t].end());
    freed[0].insert(freed[0].end(), freed[t].begin(), freed[t].end());
  }
  return SlotLatency{latency_of(allocated[0]), latency_of(freed[0])};
}

Result<HandleLatency> handle_latency(int rounds) {
  if (rounds < 1) return no_rounds();
  Result<UnifiedPool> pool =
      UnifiedPool::create(MemoryKind::kHost, 256 * memory_page_bytes(), {.guard_pages = false});
  if (!pool.ok()) return pool.status();
  std::vector<double> allocated, freed, acquired, released;
  for (int round = 0; round < kWarmUp + rounds; ++round) {
    Result<TensorHandle> made = Status(Code::kInternal, "nothing was allocated");
    time_call(round, allocated, [&] { made = pool->allocate(memory_page_bytes()); });
    if (!made.ok()) return made.status();
    TensorHandle handle = std::move(made).value();
    TensorHandle other;
    time_call(round, acquired, [&] { other = handle; });
    time_call(round, released, [&] { other.release(); });
    time_call(round, freed, [&] { handle.release(); });
  }
  return HandleLatency{latency_of(allocated), latency_of(freed), latency_of(acquired),
                       latency_of(released)};
}

std::optional<Waiter> parse_waiter(std::string_view name) {
  if (name == "spinning") return Waiter::kSpinning;
  if (name == "patient") return Waiter::kPatient;
  if (name == "parked") return Waiter::kParked;
  if (name == "futex") return Waiter::kFutex;
  return std::nullopt;
}

Result<Latency> wake_latency(Waiter waiter, int rounds) {
  if (rounds < 1) return no_rounds();
  const bool patient = waiter == Waiter::kPatient;
  HostTimeline waiting, seen;
  HostTimeline signalled(0, patient ? 10 * kUntilParked : std::chrono::microseconds(0));
  BareFutex futex;
  const bool bare = waiter == Waiter::kFutex;
  Clock::time_point woken;  // passed on by `seen`
  std::thread other([&] {
    const OnCore last(false);
    for (int round = 1; round <= rounds; ++round) {
      const uint64_t turn = static_cast<uint64_t>(round);
      if (!waiting.signal(turn).ok()) return;
      if (bare) {
        futex.wait(static_cast<uint32_t>(round));
      } else if (signalled.wait(turn, kNoDeadline) != Wait::kReached) {
        return;
      }
      woken = Clock::now();
      if (!seen.signal(turn).ok()) return;
    }
  });
  const OnCore first(true);
  std::vector<double> taken;
  taken.reserve(static_cast<size_t>(rounds));
  for (int round = 1; round <= rounds; ++round) {
    const uint64_t turn = static_cast<uint64_t>(round);
    if (waiting.wait(turn, kNoDeadline) != Wait::kReached) break;
    if (waiter != Waiter::kSpinning) {
      std::this_thread::sleep_for(kUntilParked);
    } else {
      for (const Clock::time_point begin = Clock::now(); seconds_since(begin) < kUntilSpinning;) {
      }
    }
    const Clock::time_point begin = Clock::now();
    if (bare) {
      futex.wake(static_cast<uint32_t>(round));
    } else if (!signalled.signal(turn).ok()) {
      break;
    }
    if (seen.wait(turn, kNoDeadline) != Wait::kReached) break;
    taken.push_back(std::chrono::duration<double, std::nano>(woken - begin).count());
  }
  signalled.abandon();
  other.join();
  if (taken.size() != static_cast<size_t>(rounds)) {
    return Status(Code::kInternal, "a timeline that nobody abandoned was not reached");
  }
  return latency_of(taken);
}

}  // namespace sapwood
