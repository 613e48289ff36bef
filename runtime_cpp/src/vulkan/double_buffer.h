// Double buffering over two devices that share no semaphore: one drafts, the other verifies, and
// the only thing that both wait for is what the target decided.
//
//   target   | verify t                 | decide |      verify t + 1
//   draft    | look ahead for t + 1     |        | redo it, where the look was wrong ...
//
// A stand-in for a model, of which no kernels run on Vulkan: the text is a state of float32 that
// rises by one a step, as the draft expects, or by two. A pass of the target makes the next state,
// of all numbers; one of the draft says what the first of them would be. Both see the same bytes.
// What is real is the order, by the devices' own timelines (sync/step_graph.h), and what passes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "vulkan/device.h"

namespace sapwood::vulkan {

struct DoubleBufferOptions {
  int steps = 64;              // at least 1
  uint32_t target_size = 256;  // numbers of the state, a multiple of 256
  uint32_t draft_size = 256;   // of these the draft's, a multiple of 256
  int surprise_every = 3;      // steps: the draft expects all others
  bool ahead = true;         // false: it waits for the decision, as if there were no second device
  bool looks_first = false;  // the target is let go only when the draft has looked ahead, so that
                             // any other wait between them would end no step
  double wait_seconds = 60;  // for a device, before it counts as lost
};

struct DoubleBufferCost {
  double step_ms = 0;          // on average
  double draft_ms = 0;         // a pass of the draft while the target waited for it, on average
  double draft_ms_waited = 0;  // for the draft, a step
  int kept = 0;                // looks ahead
  int discarded = 0;
  bool right = false;  // the state in the end, and every look that was kept

  // As SessionStats::hidden_draft_share(): of the draft's passes that were of use.
  double hidden_draft_share(int steps) const;
};

// kInternal: a device does not answer.
Result<DoubleBufferCost> double_buffer_cost(const std::shared_ptr<Device>& draft,
                                            const std::shared_ptr<Device>& target,
                                            const DoubleBufferOptions& options);

}  // namespace sapwood::vulkan
