// A team of threads that runs one function at a time, each member with its own index.
//
// Members spin for a short while between runs, then sleep, so that a step starts in well under a
// microsecond while decoding and an idle engine burns nothing. The caller is member 0.
//
//   ThreadTeam team(2);
//   team.run([&](int thread) { part_one(thread); team.barrier(); part_two(thread); });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace sapwood {

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // at least 1
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Runs work(0) here and work(1 ...) on the others; returns when all have returned. One run at a
  // time, from one thread. No allocation.
  template <typename Work>
  void run(Work&& work) {
    dispatch(
        [](void* context, int thread) { (*static_cast<std::decay_t<Work>*>(context))(thread); },
        const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Inside run(): returns when every member has called it.
  void barrier();

  // The part of [0, items) that belongs to `thread`: contiguous, in order, sizes differ by one.
  std::pair<int, int> share(int items, int thread) const {
    const int64_t n = items;
    return {static_cast<int>(n * thread / size_), static_cast<int>(n * (thread + 1) / size_)};
  }

 private:
  using Function = void (*)(void* context, int thread);
  void dispatch(Function function, void* context);
  void member(int thread);

  const int size_;
  Function function_ = nullptr;
  void* context_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};  // counts runs; members wait for it to move
  alignas(64) std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint64_t> arrived_{0};  // barrier arrivals, counts up for ever
  alignas(64) std::atomic<int> finished_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> members_;
};

}  // namespace sapwood
