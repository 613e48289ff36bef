#include "measure/model_cost.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>

#include "base/clock.h"
#include "kernels/team_share.h"

namespace sapwood {

struct ModelCost::Tree {
  std::vector<int32_t> tokens, positions, slots, context, paths, begin, end, outputs;

  RowBatch batch() const { return {tokens, positions, slots, context, paths, begin, end, outputs}; }
};

// A root and its children: all paths differ, as in a wide tree.
ModelCost::Tree ModelCost::tree(int rows, int context) const {
  Tree tree;
  tree.context.resize(context);
  std::iota(tree.context.begin(), tree.context.end(), 0);
  for (int row = 0; row < rows; ++row) {
    tree.tokens.push_back((row * 37 + 11) % bundle_->spec().vocabulary_size);
    tree.positions.push_back(context + (row > 0));
    tree.slots.push_back(context + row);
    tree.begin.push_back(static_cast<int32_t>(tree.paths.size()));
    if (row > 0) tree.paths.push_back(context);
    tree.paths.push_back(context + row);
    tree.end.push_back(static_cast<int32_t>(tree.paths.size()));
    tree.outputs.push_back(row);
  }
  return tree;
}

ModelCost::ModelCost(std::shared_ptr<const Bundle> bundle, int threads, int max_rows,
                     int max_context, KvFormat kv)
    : bundle_(std::move(bundle)),
      team_(std::make_shared<ThreadTeam>(threads)),
      max_rows_(max_rows) {
  const ModelSpec& spec = bundle_->spec();
  int widest_input = 0;
  int widest_output = 0;
  const auto add = [&](const LinearWeights& linear) {
    linears_.push_back(linear);
    linear_bytes_ += static_cast<double>(linear.bytes());
    linear_multiplies_ += static_cast<double>(linear.outputs) * linear.inputs;
    widest_input = std::max(widest_input, linear.inputs);
    widest_output = std::max(widest_output, linear.outputs);
  };
  for (int index = 0; index < spec.layers; ++index) {
    const LayerWeights layer = bundle_->layer(index);
    for (const LinearWeights* linear : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) {
      add(*linear);
    }
  }
  add(bundle_->head());

  const size_t rows = static_cast<size_t>(max_rows);
  codes_.assign(rows * widest_input, 3);
  scales_.assign(rows * widest_input / kActivationGroup, 1e-3f);
  sums_.assign(rows * widest_input / kActivationGroup, 96);
  const int width = spec.heads * spec.head_dim;
  q_.assign(rows * width, 0.1f);
  out_.assign(rows * static_cast<size_t>(std::max(widest_output, width)), 0.0f);
  logits_.assign(rows * spec.vocabulary_size, 0.0f);
  kv_ = std::move(
      KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, max_context + max_rows, kv)
          .value());
}

std::span<const uint8_t> ModelCost::weights() const { return bundle_->weights(); }

Status ModelCost::check(int rows, int context) const {
  if (rows >= 1 && rows <= max_rows_ && context >= 0 && context + rows <= kv_->slots()) {
    return Status::okay();
  }
  return {Code::kInvalidArgument, std::to_string(rows) + " rows over " + std::to_string(context) +
                                      " tokens: this was made for at most " +
                                      std::to_string(max_rows_) + " rows and " +
                                      std::to_string(kv_->slots() - max_rows_) + " tokens"};
}

// Members of other teams spin for a moment after their last run and would share our cores: waits
// until they sleep, and wakes ours.
void ModelCost::settle() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  team_->run([](int) {});
}

Result<double> ModelCost::linears(int rows) {
  SAPWOOD_TRY(check(rows, 0));
  settle();
  const KernelTable& kernel = kernels();
  const Clock::time_point start = Clock::now();
  team_->run([&](int thread) {
    for (const LinearWeights& linear : linears_) {
      const QuantizedRows x{codes_.data(), scales_.data(), sums_.data(), scales_.data(),
                            linear.inputs};
      const auto [begin, end] = panel_share(linear, *team_, thread);
      kernel.linear(linear, x, rows, begin, end, false, out_.data(), linear.outputs);
      team_->barrier();
    }
  });
  return seconds_since(start) * 1e3;
}

Result<double> ModelCost::attention(int rows, int context) {
  SAPWOOD_TRY(check(rows, context));
  const ModelSpec& spec = bundle_->spec();
  const Tree tree = this->tree(rows, context);
  const RowBatch batch = tree.batch();
  const AttentionShape widest = spec.layer_shape(0).attention;
  const size_t each = attention_scratch_floats(widest, batch, rows);
  scratch_.resize(each * team_->size());
  const int width = spec.heads * spec.head_dim;
  settle();
  const Clock::time_point start = Clock::now();
  team_->run([&](int thread) {
    for (int layer = 0; layer < spec.layers; ++layer) {
      const AttentionShape shape = spec.layer_shape(layer).attention;
      for_each_attention_run(shape, rows, *team_, thread, [&](const AttentionRun& run) {
        kernels().attention(shape, batch, kv_->layer(layer), run.head_begin, run.head_end,
                            run.row_begin, run.row_end, q_.data(), width, out_.data(), width,
                            scratch_.data() + thread * each);
      });
      team_->barrier();
    }
  });
  return seconds_since(start) * 1e3;
}

Result<double> ModelCost::model(Model& model, int rows, int context) {
  SAPWOOD_TRY(check(rows, context));
  const Tree tree = this->tree(rows, context);
  settle();
  if (model.team() != team_) {  // one that keeps its team to itself wakes it with a pass
    const Tree one = this->tree(1, context);
    SAPWOOD_TRY(model.forward(one.batch(), *kv_, logits_));
  }
  const Clock::time_point start = Clock::now();
  SAPWOOD_TRY(model.forward(tree.batch(), *kv_, logits_));
  return seconds_since(start) * 1e3;
}

Result<double> ModelCost::prefill(Model& model, int tokens) {
  std::vector<int32_t> token(tokens), position(tokens), begin(tokens, 0), end(tokens);
  std::iota(position.begin(), position.end(), 0);
  for (int i = 0; i < tokens; ++i) token[i] = (i * 37 + 11) % bundle_->spec().vocabulary_size;
  std::iota(end.begin(), end.end(), 1);
  const std::span<const int32_t> slots(position);
  settle();
  const Clock::time_point start = Clock::now();
  for (int done = 0; done < tokens;) {
    const int count = std::min(model.max_rows(), tokens - done);
    const RowBatch chunk{std::span(token).subspan(done, count),
                         slots.subspan(done, count),
                         slots.subspan(done, count),
                         slots.first(done),
                         slots.subspan(done, count),
                         std::span(begin).first(count),
                         std::span(end).first(count),
                         {}};
    SAPWOOD_TRY(model.forward(chunk, *kv_, {}));
    done += count;
  }
  return seconds_since(start) * 1e3;
}

}  // namespace sapwood
