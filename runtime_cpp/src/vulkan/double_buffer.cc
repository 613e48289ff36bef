#include "vulkan/double_buffer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "memory/unified_pool.h"
#include "sync/step_graph.h"
#include "vulkan/compute_pass.h"

namespace sapwood::vulkan {
namespace {

constexpr uint32_t kWorkgroup = 256;      // of the shader
constexpr uint32_t kMostSize = 1u << 23;  // numbers: 32 MiB, and fewer workgroups than any limit

// The state and the guess at it lie in two places by turns, the even steps' and the odd ones'.
enum Piece : size_t { kOne, kTwo, kState, kGuess = kState + 2, kPieces = kGuess + 2 };
size_t state_of(uint64_t step) { return kState + step % 2; }
size_t guess_of(uint64_t step) { return kGuess + step % 2; }

std::span<float> floats(const TensorHandle& piece) {
  return {reinterpret_cast<float*>(piece.data()), piece.bytes() / sizeof(float)};
}

// What one device runs, over the pool's pieces.
class Side {
 public:
  static Result<Side> create(std::shared_ptr<Device> device, const UnifiedPool& pool,
                             std::span<const TensorHandle> pieces, uint32_t size) {
    Side side(std::move(device), size);
    const Result<PoolMemory> memory = PoolMemory::import(side.device_, pool);
    if (!memory.ok()) return memory.status();
    for (const TensorHandle& piece : pieces) {
      Result<Buffer> buffer = memory->bind(piece);
      if (!buffer.ok()) return buffer.status();
      side.buffers_.push_back(std::move(buffer).value());
    }
    return side;
  }

  // sums = left + right, of as many numbers as this side has.
  Result<std::unique_ptr<ComputePass>> add(size_t left, size_t right, size_t sums) const {
    const std::array<const Buffer*, 3> bound = {&buffers_[left], &buffers_[right], &buffers_[sums]};
    return ComputePass::record(device_, add_shader(), bound, std::as_bytes(std::span(&size_, 1)),
                               size_ / kWorkgroup);
  }

 private:
  Side(std::shared_ptr<Device> device, uint32_t size) : device_(std::move(device)), size_(size) {}

  std::shared_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  uint32_t size_;
};

using Passes = std::array<std::unique_ptr<ComputePass>, 2>;  // by the parity of their step

// `pass(step)` -> Result<std::unique_ptr<ComputePass>>, of an even step and of an odd one.
template <typename Record>
Status record_both(Passes& passes, Record&& record) {
  for (uint64_t parity = 0; parity < passes.size(); ++parity) {
    Result<std::unique_ptr<ComputePass>> pass = record(parity);
    if (!pass.ok()) return pass.status();
    passes[parity] = std::move(pass).value();
  }
  return Status::okay();
}

// A semaphore of the device, or why there is none.
Status make(std::unique_ptr<VulkanTimeline>& timeline, const std::shared_ptr<Device>& device) {
  Result<std::unique_ptr<VulkanTimeline>> made = VulkanTimeline::create(device);
  if (!made.ok()) return made.status();
  timeline = std::move(made).value();
  return Status::okay();
}

class Turns {
 public:
  Turns(std::shared_ptr<Device> draft, std::shared_ptr<Device> target,
        const DoubleBufferOptions& options)
      : draft_(std::move(draft)), target_(std::move(target)), options_(options) {}

  Status prepare();
  Result<DoubleBufferCost> run();

 private:
  Status draft(uint64_t step);
  Status verify(uint64_t step);
  float rise(uint64_t step) const {
    return step % static_cast<uint64_t>(options_.surprise_every) == 0 ? 2 : 1;
  }
  void abandon() const {
    graph_->abandon();
    looked_->abandon();
  }
  // No pass that was submitted stays in a queue: only the processor signals what it waits for.
  void let_all_go() const {
    const uint64_t last = static_cast<uint64_t>(options_.steps);
    if (may_verify_->value() < last) static_cast<void>(may_verify_->signal(last));
  }
  Deadline soon() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(options_.wait_seconds));
  }
  static Status reached(Wait outcome, const char* whose) {
    if (outcome == Wait::kReached) return Status::okay();
    return Status(Code::kInternal, std::string("the device that ") + whose + " does not answer");
  }

  const std::shared_ptr<Device> draft_, target_;
  const DoubleBufferOptions options_;
  std::vector<TensorHandle> pieces_;
  std::optional<Side> drafts_, verifies_;  // their buffers outlive the passes
  std::array<Passes, 2> verify_;           // where the text goes as expected, and where not
  Passes look_ahead_, redo_;
  std::unique_ptr<VulkanTimeline> drafted_, may_draft_, looked_;  // the draft's device's
  std::unique_ptr<VulkanTimeline> may_verify_, verified_;         // the target's
  HostTimeline sampled_;
  std::optional<StepGraph> graph_;
  std::atomic<bool> right_{false};  // the look at the step that was sampled last
  DoubleBufferCost cost_;
  int redone_ = 0;
  double state_ = 0;
};

Status Turns::prepare() {
  const size_t bytes = options_.target_size * sizeof(float);
  Result<UnifiedPool> pool = UnifiedPool::create(
      MemoryKind::kHost, kPieces * (bytes + memory_page_bytes()), {.guard_pages = false});
  if (!pool.ok()) return pool.status();
  for (size_t i = 0; i < kPieces; ++i) {
    Result<TensorHandle> piece = pool->allocate(bytes);
    if (!piece.ok()) return piece.status();
    std::ranges::fill(floats(piece.value()), i == kOne ? 1.f : i == kTwo ? 2.f : 0.f);
    pieces_.push_back(std::move(piece).value());
  }
  Result<Side> draft = Side::create(draft_, pool.value(), pieces_, options_.draft_size);
  if (!draft.ok()) return draft.status();
  drafts_.emplace(std::move(draft).value());
  Result<Side> target = Side::create(target_, pool.value(), pieces_, options_.target_size);
  if (!target.ok()) return target.status();
  verifies_.emplace(std::move(target).value());
  for (const Piece rise : {kOne, kTwo}) {
    SAPWOOD_TRY(record_both(verify_[rise], [&](uint64_t step) {
      return verifies_->add(state_of(step + 1), rise, state_of(step));
    }));
  }
  SAPWOOD_TRY(record_both(look_ahead_, [&](uint64_t step) {
    return drafts_->add(guess_of(step + 1), kOne, guess_of(step));
  }));
  SAPWOOD_TRY(record_both(redo_, [&](uint64_t step) {
    return drafts_->add(state_of(step + 1), kOne, guess_of(step));
  }));
  for (auto* each : {&drafted_, &may_draft_, &looked_}) SAPWOOD_TRY(make(*each, draft_));
  for (auto* each : {&may_verify_, &verified_}) SAPWOOD_TRY(make(*each, target_));
  Result<StepGraph> graph =
      StepGraph::create(*drafted_, *verified_, sampled_, options_.ahead ? 2 : 1);
  if (!graph.ok()) return graph.status();
  graph_.emplace(std::move(graph).value());
  return Status::okay();
}

// The guess at the state after the step, kept or done again.
Status Turns::draft(uint64_t step) {
  const char* const whose = "verifies";
  SAPWOOD_TRY(reached(graph_->begin(Stage::kDraft, step, soon()), whose));
  SAPWOOD_TRY(may_draft_->signal(step));
  if (options_.ahead && step > 1) {
    SAPWOOD_TRY(look_ahead_[step % 2]->submit(*may_draft_, step, *looked_, step));
    SAPWOOD_TRY(reached(looked_->wait(step, soon()), "drafts"));
    // The only wait for the target: what it decided.
    SAPWOOD_TRY(reached(sampled_.wait(step - 1, soon()), whose));
    ++(right_ ? cost_.kept : cost_.discarded);
    if (right_) return graph_->end(Stage::kDraft, step);
  }
  const Clock::time_point begin = Clock::now();
  SAPWOOD_TRY(redo_[step % 2]->submit(*may_draft_, step, *drafted_, step));
  // A pass may be submitted again only when it is done.
  SAPWOOD_TRY(reached(drafted_->wait(step, soon()), "drafts"));
  cost_.draft_ms += seconds_since(begin) * 1e3;
  ++redone_;
  return Status::okay();
}

Status Turns::verify(uint64_t step) {
  // The target's device cannot wait for the draft's: the processor carries the value over.
  const Clock::time_point begin = Clock::now();
  SAPWOOD_TRY(reached(graph_->begin(Stage::kTarget, step, soon()), "drafts"));
  cost_.draft_ms_waited += seconds_since(begin) * 1e3;
  const float rises = rise(step);
  SAPWOOD_TRY(
      verify_[rises == 1 ? kOne : kTwo][step % 2]->submit(*may_verify_, step, *verified_, step));
  if (options_.looks_first && step < static_cast<uint64_t>(options_.steps)) {
    SAPWOOD_TRY(reached(looked_->wait(step + 1, soon()), "drafts"));
    if (verified_->value() >= step) return Status(Code::kInternal, "the target did not wait");
  }
  SAPWOOD_TRY(may_verify_->signal(step));
  SAPWOOD_TRY(reached(graph_->begin(Stage::kSampler, step, soon()), "verifies"));
  state_ += static_cast<double>(rises);
  const std::span<const float> found = floats(pieces_[state_of(step)]).first(options_.draft_size);
  const std::span<const float> guess = floats(pieces_[guess_of(step)]).first(options_.draft_size);
  right_ = std::ranges::equal(found, guess);
  if (right_ != (rises == 1)) cost_.right = false;
  return graph_->end(Stage::kSampler, step);
}

Result<DoubleBufferCost> Turns::run() {
  cost_.right = true;
  const uint64_t steps = static_cast<uint64_t>(options_.steps);
  Status drafted;
  const auto all_of = [&](Status (Turns::*stage)(uint64_t)) {
    Status outcome;
    for (uint64_t step = 1; step <= steps && outcome.ok(); ++step) outcome = (this->*stage)(step);
    if (!outcome.ok()) abandon();
    return outcome;
  };
  const Clock::time_point begin = Clock::now();
  std::thread drafting([&] { drafted = all_of(&Turns::draft); });
  const Status verified = all_of(&Turns::verify);
  drafting.join();
  let_all_go();
  SAPWOOD_TRY(verified);
  SAPWOOD_TRY(drafted);
  cost_.step_ms = seconds_since(begin) * 1e3 / options_.steps;
  cost_.draft_ms /= redone_;
  cost_.draft_ms_waited /= options_.steps;
  const std::span<const float> state = floats(pieces_[state_of(steps)]).first(options_.target_size);
  cost_.right = cost_.right && std::ranges::all_of(state, [&](float each) {
                  return static_cast<double>(each) == state_;
                });
  return cost_;
}

}  // namespace

double DoubleBufferCost::hidden_draft_share(int steps) const {
  const double hidden = draft_ms * kept;
  const double all = hidden + draft_ms_waited * steps;
  return all > 0 ? hidden / all : 0;
}

Result<DoubleBufferCost> double_buffer_cost(const std::shared_ptr<Device>& draft,
                                            const std::shared_ptr<Device>& target,
                                            const DoubleBufferOptions& options) {
  const auto is_size = [](uint32_t size) { return size > 0 && size % kWorkgroup == 0; };
  if (options.steps < 1 || options.surprise_every < 1 || !is_size(options.draft_size) ||
      !is_size(options.target_size) || options.draft_size > options.target_size ||
      options.target_size > kMostSize) {
    return Status(
        Code::kInvalidArgument,
        "double buffering on devices takes a step or more, and passes over multiples of " +
            std::to_string(kWorkgroup) + " numbers, up to " + std::to_string(kMostSize) +
            " for the target and no more for the draft");
  }
  Turns turns(draft, target, options);
  SAPWOOD_TRY(turns.prepare());
  return turns.run();
}

}  // namespace sapwood::vulkan
