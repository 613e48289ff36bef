#include "measure/machine.h"

#include <atomic>

#include "base/clock.h"
#include "kernels/kernels.h"

namespace sapwood {

double read_bandwidth(std::span<const uint8_t> memory, ThreadTeam& team) {
  std::atomic<float> sink{0.0f};
  const size_t share = memory.size() / team.size() / 256 * 256;
  const Clock::time_point start = Clock::now();
  team.run([&](int thread) {
    sink.store(kernels().read_memory(memory.data() + thread * share, share),
               std::memory_order_relaxed);
  });
  return static_cast<double>(share) * team.size() / seconds_since(start);
}

double int8_peak(ThreadTeam& team) {
  std::atomic<int64_t> done{0};
  std::atomic<int32_t> sink{0};
  const auto run = [&](int64_t rounds) {
    done = 0;
    const Clock::time_point start = Clock::now();
    team.run([&](int) {
      int32_t local = 0;
      done += kernels().peak_dots(rounds, &local);
      sink.store(local, std::memory_order_relaxed);
    });
    return seconds_since(start);
  };
  const double trial = run(20000);
  const double seconds = run(static_cast<int64_t>(20000 * (0.01 / (trial + 1e-9))) + 1);
  return static_cast<double>(done.load()) / seconds;
}

double barrier_seconds(ThreadTeam& team) {
  constexpr int kBarriers = 10000;
  const Clock::time_point start = Clock::now();
  team.run([&](int) {
    for (int i = 0; i < kBarriers; ++i) team.barrier();
  });
  return seconds_since(start) / kBarriers;
}

}  // namespace sapwood
