#include "measure/trace_cost.h"

#include <memory>
#include <vector>

#include "base/clock.h"
#include "measure/median.h"
#include "trace/tracing.h"

namespace sapwood {
namespace {

constexpr int kEvents = 4096;  // timed together

template <typename Record>
double nanoseconds_each(int rounds, Record&& record) {
  std::vector<double> found;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kEvents; ++i) record(i);
    found.push_back(seconds_since(begin) * 1e9 / kEvents);
  }
  return median(found);
}

}  // namespace

Result<TraceCost> trace_cost(int rounds) {
  if (rounds < 1) return Status(Code::kInvalidArgument, "at least one round is needed");
  const Tracing on{std::make_shared<TraceRing>(1 << 12), nullptr};
  const Tracing off;
  const auto event = [](int number) {
    return TraceEvent{.name = TraceName::kTargetVerify, .step = number, .rows = number};
  };
  TraceCost cost;
  cost.event = nanoseconds_each(rounds, [&](int i) { on.ring->record(event(i)); });
  cost.stage = nanoseconds_each(rounds, [&](int i) { const TraceSpan span(on, event(i)); });
  cost.off = nanoseconds_each(rounds, [&](int i) { const TraceSpan span(off, event(i)); });
  return cost;
}

}  // namespace sapwood
