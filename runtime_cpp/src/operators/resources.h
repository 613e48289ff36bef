// What the operators of a session share, on either host: the thread team and the scratch memory.
//
// Scratch grows when a run needs more than any run before it, and is kept: steady-state decoding
// allocates nothing. One operator at a time uses it, under `mutex`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "base/status.h"
#include "base/thread_team.h"
#include "kernels/decoder_layer.h"
#include "kernels/hidden_states.h"
#include "kernels/linear.h"
#include "kernels/row_batch.h"

namespace sapwood::operators {

// Memory that only grows. Contents are lost when it does.
template <typename T>
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { ::operator delete(data_, kAlignment); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* at_least(size_t count) {
    if (count > count_) {
      ::operator delete(data_, kAlignment);
      data_ = nullptr;
      count_ = 0;
      data_ = static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
      count_ = count;
    }
    return data_;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  T* data_ = nullptr;
  size_t count_ = 0;
};

class Resources {
 public:
  explicit Resources(int threads) : team_(std::make_shared<ThreadTeam>(threads)) {}

  std::mutex& mutex() { return mutex_; }
  ThreadTeam& team() { return *team_; }
  const std::shared_ptr<ThreadTeam>& shared_team() const { return team_; }

  // A host that keeps what layers give. Of one pass, between begin_pass and end_pass, the embedding
  // and then every layer in turn show() it. An error at the end unless `layers` of them did, if any
  // is to be kept: in a graph without these operators nobody shows anything.
  HiddenStates& hidden_states() { return hidden_states_; }
  const HiddenStates& hidden_states() const { return hidden_states_; }
  void begin_pass(int rows);
  void show(const float* hidden, int rows);
  Status end_pass(int layers) const;

  // Scratch for layers of this shape; layers that differ in their window only share it.
  LayerWorkspace& layer_workspace(const LayerShape& shape, int rows, int visible_tokens);

  // Scratch for the head of a model of this width.
  LayerWorkspace& head_workspace(int hidden, int rows);

  // Room for `rows` rows of `inputs` quantised values.
  QuantizedRows quantized_rows(int rows, int inputs);

  // `floats` for each member of the team, at thread * stride.
  float* attention_scratch(size_t floats_per_thread, size_t* stride);

  Scratch<int32_t> path_begin, path_end, positions;

 private:
  struct Workspace {
    LayerShape shape;
    std::unique_ptr<LayerWorkspace> memory;
  };

  std::mutex mutex_;
  const std::shared_ptr<ThreadTeam> team_;
  HiddenStates hidden_states_;
  int shown_ = 0;  // of the pass: the embedding and layers
  std::vector<Workspace> workspaces_;
  Scratch<int8_t> codes_;
  Scratch<float> scales_, scaled_sums_, attention_;
  Scratch<int32_t> sums_;
};

// The resources that all sessions of this process with that many threads share, so that two
// sessions do not fight over the cores. They live as long as someone holds them.
std::shared_ptr<Resources> shared_resources(int threads);

}  // namespace sapwood::operators
