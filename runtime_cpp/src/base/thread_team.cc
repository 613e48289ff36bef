#include "base/thread_team.h"

#include "base/pause.h"

namespace sapwood {
namespace {

// Long enough to bridge the sampling and drafting between two steps, short enough that an engine
// that waits for a person costs nothing.
constexpr int kSpinsBeforeSleep = 20000;

// A thread that shares its core with the one it waits for must let it run.
constexpr int kSpinsBeforeYield = 2000;

template <typename Condition>
void spin_until(Condition condition) {
  for (int spins = 0; !condition(); ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : size_(threads < 1 ? 1 : threads) {
  members_.reserve(static_cast<size_t>(size_ - 1));
  for (int thread = 1; thread < size_; ++thread) {
    members_.emplace_back([this, thread] { member(thread); });
  }
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_seq_cst);
  generation_.notify_all();
  for (std::thread& member : members_) member.join();
}

void ThreadTeam::dispatch(Function function, void* context) {
  if (size_ > 1) {
    function_ = function;
    context_ = context;
    finished_.store(0, std::memory_order_relaxed);
    // Sequentially consistent with the sleeper's count: either it sees the new generation, or it
    // is counted here and woken.
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
  }
  function(context, 0);
  if (size_ > 1) {
    spin_until([this] { return finished_.load(std::memory_order_acquire) == size_ - 1; });
  }
}

void ThreadTeam::member(int thread) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t current = seen;
    for (int spins = 0; spins < kSpinsBeforeSleep && current == seen; ++spins) {
      pause();
      current = generation_.load(std::memory_order_acquire);
    }
    if (current == seen) {
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      generation_.wait(seen, std::memory_order_seq_cst);
      sleepers_.fetch_sub(1, std::memory_order_relaxed);
      current = generation_.load(std::memory_order_acquire);
    }
    if (stop_.load(std::memory_order_relaxed)) return;
    seen = current;
    function_(context_, thread);
    finished_.fetch_add(1, std::memory_order_release);
  }
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const uint64_t size = static_cast<uint64_t>(size_);
  const uint64_t ticket = arrived_.fetch_add(1, std::memory_order_acq_rel);
  const uint64_t everyone = (ticket / size + 1) * size;
  spin_until([&] { return arrived_.load(std::memory_order_acquire) >= everyone; });
}

}  // namespace sapwood
