// The stages of decoding and what each waits for: draft -> target -> sampler, and round again.
//
//              +-- draft(t) --drafted--> target(t) --verified--> sampler(t) --+
//              |                                                              |
//              +---------- sampled(t - buffers): a tree's memory is free <----+
//
// With one buffer the draft of a step begins when the step before is sampled. With two it may grow
// the next tree while the target verifies this one (double buffering). Each stage signals its own
// timeline, which may live on the processor or on a device.
//
//   StepGraph graph(drafted, verified, sampled, /*buffers=*/2);
//   for (uint64_t step = graph.first_step();; ++step) {        // the target's thread
//     if (graph.begin(Stage::kTarget, step, deadline) != Wait::kReached) return graph.abandon();
//     verify(tree[step % 2]);
//     SAPWOOD_TRY(graph.end(Stage::kTarget, step));
//   }
//
// A missed deadline is for the watchdog to judge: it abandons the graph, which wakes every stage,
// and goes on with a new one from the first step that was not sampled.
#pragma once

#include <array>
#include <cstdint>

#include "base/status.h"
#include "sync/timeline.h"

namespace sapwood {

enum class Stage { kDraft, kTarget, kSampler };
inline constexpr int kStages = 3;

class StepGraph {
 public:
  // The timelines are the caller's, outlive the graph, and stand at one value: the steps done
  // already. buffers: 1 or more.
  static Result<StepGraph> create(Timeline& drafted, Timeline& verified, Timeline& sampled,
                                  int buffers);

  uint64_t first_step() const { return done_before_ + 1; }
  uint64_t steps_done() const { return timeline(Stage::kSampler).value() - done_before_; }

  // Waits until the stage may work on the step. One thread a stage, steps in order.
  [[nodiscard]] Wait begin(Stage stage, uint64_t step, Deadline deadline) const;

  // What the stage did is there for the next one. Errors as Timeline::signal has them.
  Status end(Stage stage, uint64_t step) const { return timeline(stage).signal(step); }

  // Every begin() that waits, or would, returns kAbandoned.
  void abandon() const;

 private:
  StepGraph(std::array<Timeline*, kStages> timelines, int buffers, uint64_t done_before)
      : timelines_(timelines),
        buffers_(static_cast<uint64_t>(buffers)),
        done_before_(done_before) {}
  Timeline& timeline(Stage stage) const { return *timelines_[static_cast<size_t>(stage)]; }

  std::array<Timeline*, kStages> timelines_;
  uint64_t buffers_;
  uint64_t done_before_;
};

}  // namespace sapwood
