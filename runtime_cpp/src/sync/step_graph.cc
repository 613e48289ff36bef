#include "sync/step_graph.h"

#include <string>

namespace sapwood {

Result<StepGraph> StepGraph::create(Timeline& drafted, Timeline& verified, Timeline& sampled,
                                    int buffers) {
  if (buffers < 1) {
    return Status(Code::kInvalidArgument,
                  "a step graph needs at least one buffer, not " + std::to_string(buffers));
  }
  const uint64_t done = sampled.value();
  if (drafted.value() != done || verified.value() != done) {
    return Status(Code::kInvalidArgument,
                  "the timelines of a step graph must start at one value, not at " +
                      std::to_string(drafted.value()) + ", " + std::to_string(verified.value()) +
                      " and " + std::to_string(done));
  }
  return StepGraph({&drafted, &verified, &sampled}, buffers, done);
}

Wait StepGraph::begin(Stage stage, uint64_t step, Deadline deadline) const {
  switch (stage) {
    case Stage::kTarget:
      return timeline(Stage::kDraft).wait(step, deadline);
    case Stage::kSampler:
      return timeline(Stage::kTarget).wait(step, deadline);
    case Stage::kDraft:
      break;
  }
  return timeline(Stage::kSampler).wait(step > buffers_ ? step - buffers_ : 0, deadline);
}

void StepGraph::abandon() const {
  for (Timeline* timeline : timelines_) timeline->abandon();
}

}  // namespace sapwood
