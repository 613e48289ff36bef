#include "kernels/decoder_layer.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>
#include <vector>

#include "kernels/attention_limits.h"

namespace sapwood {
namespace {

constexpr size_t kAlignment = 64;

// An uninitialised, aligned array that lives as long as its workspace.
template <typename T>
class Array {
 public:
  explicit Array(size_t count)
      : data_(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kAlignment}))) {}
  Array(Array&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  ~Array() { ::operator delete (data_, std::align_val_t{kAlignment}); }
  T* data() { return data_; }

 private:
  T* data_;
};

struct Quantized {
  Quantized(size_t rows, size_t inputs)
      : codes(rows * inputs),
        scales(rows * inputs / kActivationGroup),
        sums(rows * inputs / kActivationGroup),
        scaled_sums(rows * inputs / kActivationGroup) {}

  QuantizedRows rows(int inputs) {
    return {codes.data(), scales.data(), sums.data(), scaled_sums.data(), inputs};
  }

  Array<int8_t> codes;
  Array<float> scales;
  Array<int32_t> sums;
  Array<float> scaled_sums;
};

}  // namespace

struct LayerWorkspace::Buffers {
  Buffers(const LayerShape& shape, int max_rows, int max_context, int threads);

  Array<float> normed;                          // [rows][max(hidden)]
  Array<float> qkv;                             // [rows][(heads + 2 kv_heads) * head_dim]
  Array<float> attended;                        // [rows][heads * head_dim]
  Array<float> gated;                           // [rows][intermediate]
  Quantized quantized;                          // [rows][widest input of a linear]
  std::vector<Array<float>> attention_scratch;  // one a thread
};

namespace {

size_t scratch_floats(const AttentionShape& shape, int max_context) {
  const size_t columns = (static_cast<size_t>(max_context) + 15) / 16 * 16 + 32;
  return static_cast<size_t>(kAttentionRows) * (shape.heads / shape.kv_heads) *
         (columns + 2 * shape.head_dim);
}

int attended_width(const LayerShape& shape) {
  return shape.attention.heads * shape.attention.head_dim;
}

int widest_input(const LayerShape& shape) {
  return std::max({shape.hidden, shape.intermediate, attended_width(shape)});
}

int qkv_width(const AttentionShape& shape) {
  return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
}

}  // namespace

LayerWorkspace::Buffers::Buffers(const LayerShape& shape, int max_rows, int max_context,
                                 int threads)
    : normed(static_cast<size_t>(max_rows) * shape.hidden),
      qkv(static_cast<size_t>(max_rows) * qkv_width(shape.attention)),
      attended(static_cast<size_t>(max_rows) * attended_width(shape)),
      gated(static_cast<size_t>(max_rows) * shape.intermediate),
      quantized(max_rows, widest_input(shape)) {
  for (int thread = 0; thread < threads; ++thread) {
    attention_scratch.emplace_back(scratch_floats(shape.attention, max_context));
  }
}

LayerWorkspace::LayerWorkspace(const LayerShape& shape, int max_rows, int max_context, int threads)
    : max_rows_(max_rows),
      max_context_(max_context),
      buffers_(new Buffers(shape, max_rows, max_context, threads)) {}

LayerWorkspace::~LayerWorkspace() { delete buffers_; }

namespace {

// Everything one member needs while it works on one layer.
struct LayerPass {
  const LayerShape& shape;
  const LayerWeights& weights;
  const RowBatch& batch;
  const float* rotary;
  const KvLayerView& kv;
  float* hidden;
  LayerWorkspace::Buffers& buffers;
  ThreadTeam& team;
  int thread;
  const KernelTable& kernel = kernels();

  int rows() const { return batch.rows(); }

  // Quantises this member's share of the rows of `x`; the team may read them after a barrier.
  QuantizedRows quantize(const float* x, int columns) {
    const QuantizedRows out = buffers.quantized.rows(columns);
    const auto [begin, end] = team.share(rows(), thread);
    kernel.quantize_rows(x, columns, columns, begin, end, out);
    return out;
  }

  QuantizedRows norm_and_quantize(const float* weight) {
    const auto [begin, end] = team.share(rows(), thread);
    float* normed = buffers.normed.data();
    const size_t offset = static_cast<size_t>(begin) * shape.hidden;
    kernel.rms_norm(hidden + offset, shape.hidden, weight, shape.norm_epsilon, end - begin,
                    shape.hidden, normed + offset, shape.hidden);
    return quantize(normed, shape.hidden);
  }

  void linear(const LinearWeights& linear, const QuantizedRows& x, bool accumulate, float* y) {
    const auto [begin, end] = team.share(linear.panels(), thread);
    kernel.linear(linear, x, rows(), begin, end, accumulate, y, linear.outputs);
    team.barrier();
  }

  // hidden += linear(x), through a norm where the family has one after it.
  void residual(const LinearWeights& weights, const float* post_norm, const QuantizedRows& x) {
    if (post_norm == nullptr) {
      linear(weights, x, true, hidden);
      return;
    }
    float* normed = buffers.normed.data();
    linear(weights, x, false, normed);
    const auto [begin, end] = team.share(rows(), thread);
    for (int row = begin; row < end; ++row) {
      float* source = normed + static_cast<size_t>(row) * shape.hidden;
      float* target = hidden + static_cast<size_t>(row) * shape.hidden;
      kernel.rms_norm(source, shape.hidden, post_norm, shape.norm_epsilon, 1, shape.hidden, source,
                      shape.hidden);
      for (int i = 0; i < shape.hidden; ++i) target[i] = target[i] + source[i];
    }
    // The same member norms the same rows next, so no barrier is needed here.
  }

  // Bias, head norms and rotation of q and k, and the rows' K and V into their slots.
  void position_and_store() {
    const AttentionShape& a = shape.attention;
    const int width = qkv_width(a);
    const int heads = a.heads + 2 * a.kv_heads;
    const auto [begin, end] = team.share(rows() * heads, thread);
    for (int item = begin; item < end; ++item) {
      const int row = item / heads;
      const int head = item % heads;
      float* x = buffers.qkv.data() + static_cast<size_t>(row) * width + head * a.head_dim;
      if (weights.qkv_bias != nullptr) {
        const float* bias = weights.qkv_bias + head * a.head_dim;
        for (int i = 0; i < a.head_dim; ++i) x[i] = x[i] + bias[i];
      }
      const bool is_q = head < a.heads;
      const bool is_v = head >= a.heads + a.kv_heads;
      const float* norm = is_q ? weights.q_norm : weights.k_norm;
      if (!is_v) {
        if (norm != nullptr) {
          kernel.rms_norm(x, a.head_dim, norm, shape.norm_epsilon, 1, a.head_dim, x, a.head_dim);
        }
        kernel.rotate(x, rotary + static_cast<size_t>(row) * a.head_dim, a.head_dim);
      }
      if (is_q) continue;
      const int kv_head = is_v ? head - a.heads - a.kv_heads : head - a.heads;
      kernel.store_kv(kv, kv_head, batch.slots[row], is_v ? nullptr : x, is_v ? x : nullptr);
    }
    team.barrier();
  }

  void attend() {
    const AttentionShape& a = shape.attention;
    const int blocks = (rows() + kAttentionRows - 1) / kAttentionRows;
    const auto [begin, end] = team.share(a.kv_heads * blocks, thread);
    for (int item = begin; item < end; ++item) {
      const int first = item % blocks * kAttentionRows;
      kernel.attention(a, batch, kv, item / blocks, first, std::min(rows(), first + kAttentionRows),
                       buffers.qkv.data(), qkv_width(a), buffers.attended.data(),
                       attended_width(shape), buffers.attention_scratch[thread].data());
    }
    team.barrier();
  }

  void run() {
    const QuantizedRows attention_in = norm_and_quantize(weights.attention_norm);
    team.barrier();
    linear(weights.qkv, attention_in, false, buffers.qkv.data());
    position_and_store();
    attend();
    const QuantizedRows attended = quantize(buffers.attended.data(), attended_width(shape));
    team.barrier();
    residual(weights.output, weights.attention_post_norm, attended);

    const QuantizedRows mlp_in = norm_and_quantize(weights.mlp_norm);
    team.barrier();
    const auto [begin, end] = team.share(shape.intermediate / kPanel, thread);
    kernel.gated_linear(weights.gate_up, mlp_in, rows(), begin, end, shape.activation,
                        buffers.gated.data(), shape.intermediate);
    team.barrier();
    const QuantizedRows gated = quantize(buffers.gated.data(), shape.intermediate);
    team.barrier();
    residual(weights.down, weights.mlp_post_norm, gated);
    if (weights.mlp_post_norm != nullptr) team.barrier();
  }
};

}  // namespace

void decoder_layer(const LayerShape& shape, const LayerWeights& weights, const RowBatch& batch,
                   const float* rotary, const KvLayerView& kv, float* hidden,
                   LayerWorkspace& workspace, ThreadTeam& team, int thread) {
  assert(batch.rows() <= workspace.max_rows());
  LayerPass pass{shape, weights, batch, rotary, kv, hidden, workspace.buffers(), team, thread};
  pass.run();
}

void token_embedding(const LinearWeights& table, std::span<const int32_t> tokens, float scale,
                     float* hidden, ThreadTeam& team, int thread) {
  const auto [begin, end] = team.share(static_cast<int>(tokens.size()), thread);
  for (int row = begin; row < end; ++row) {
    kernels().embed(table, tokens[row], scale, hidden + static_cast<size_t>(row) * table.inputs);
  }
  team.barrier();
}

void output_head(const float* norm_weight, float norm_epsilon, const LinearWeights& head,
                 const float* hidden, int hidden_size, std::span<const int32_t> output_rows,
                 float* logits, LayerWorkspace& workspace, ThreadTeam& team, int thread) {
  LayerWorkspace::Buffers& buffers = workspace.buffers();
  const KernelTable& kernel = kernels();
  const int rows = static_cast<int>(output_rows.size());
  const auto [row_begin, row_end] = team.share(rows, thread);
  for (int row = row_begin; row < row_end; ++row) {
    kernel.rms_norm(hidden + static_cast<size_t>(output_rows[row]) * hidden_size, hidden_size,
                    norm_weight, norm_epsilon, 1, hidden_size,
                    buffers.normed.data() + static_cast<size_t>(row) * hidden_size, hidden_size);
  }
  const QuantizedRows x = buffers.quantized.rows(hidden_size);
  kernel.quantize_rows(buffers.normed.data(), hidden_size, hidden_size, row_begin, row_end, x);
  team.barrier();
  const auto [begin, end] = team.share(head.panels(), thread);
  kernel.linear(head, x, rows, begin, end, false, logits, head.outputs);
  team.barrier();
}

}  // namespace sapwood
