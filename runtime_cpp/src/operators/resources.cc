#include "operators/resources.h"

#include <algorithm>
#include <bit>
#include <map>

namespace sapwood::operators {
namespace {

// The next power of two, so that a few growths reach any size.
int rounded_up(int count) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(count))); }

bool same_sizes(const LayerShape& a, const LayerShape& b) {
  return a.hidden == b.hidden && a.intermediate == b.intermediate &&
         a.attention.heads == b.attention.heads && a.attention.kv_heads == b.attention.kv_heads &&
         a.attention.head_dim == b.attention.head_dim;
}

}  // namespace

LayerWorkspace& Resources::layer_workspace(const LayerShape& shape, int rows, int visible_tokens) {
  auto entry = std::find_if(workspaces_.begin(), workspaces_.end(),
                            [&](const Workspace& known) { return same_sizes(known.shape, shape); });
  if (entry == workspaces_.end()) {
    entry = workspaces_.insert(workspaces_.end(), Workspace{shape, nullptr});
  }
  const int old_rows = entry->memory ? entry->memory->max_rows() : 0;
  const int old_tokens = entry->memory ? entry->memory->max_context() : 0;
  if (rows > old_rows || visible_tokens > old_tokens) {
    const int new_rows = std::max(old_rows, rounded_up(std::max(rows, 1)));
    const int new_tokens = std::max(old_tokens, rounded_up(std::max(visible_tokens, 1)));
    entry->memory.reset();  // first, so that both are never held at once
    entry->memory = std::make_unique<LayerWorkspace>(shape, new_rows, new_tokens, team_->size());
  }
  return *entry->memory;
}

LayerWorkspace& Resources::head_workspace(int hidden, int rows) {
  // A layer with nothing but a width: the head needs scratch for normed, quantised rows only.
  LayerShape shape;
  shape.hidden = hidden;
  shape.attention = {1, 1, kPanel, 0.f, 0};
  return layer_workspace(shape, rows, 1);
}

QuantizedRows Resources::quantized_rows(int rows, int inputs) {
  const size_t values = static_cast<size_t>(rows) * inputs;
  const size_t groups = values / kActivationGroup;
  return {codes_.at_least(values), scales_.at_least(groups), sums_.at_least(groups),
          scaled_sums_.at_least(groups), inputs};
}

float* Resources::attention_scratch(size_t floats_per_thread, size_t* stride) {
  *stride = (floats_per_thread + 15) / 16 * 16;  // members do not share a cache line
  return attention_.at_least(std::bit_ceil(*stride * team_->size()));
}

void Resources::begin_pass(int rows) {
  hidden_states_.begin(rows);
  shown_ = 0;
}

void Resources::show(const float* hidden, int rows) {
  if (!hidden_states_.layers().empty()) hidden_states_.keep(shown_++, hidden, 0, rows);
}

Status Resources::end_pass(int layers) const {
  if (hidden_states_.layers().empty() || shown_ == layers + 1) return Status::okay();
  return Status(Code::kUnsupported,
                "the graph is not made of this build's layers, so it does not "
                "show hidden states; use --host native");
}

std::shared_ptr<Resources> shared_resources(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Resources>> known;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Resources>& entry = known[threads];
  std::shared_ptr<Resources> resources = entry.lock();
  if (resources == nullptr) {
    resources = std::make_shared<Resources>(threads);
    entry = resources;
  }
  return resources;
}

}  // namespace sapwood::operators
