#include "kernels/decoder_layer.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <vector>

#include "kernels/attention_limits.h"
#include "kernels/scratch.h"
#include "kernels/team_linear.h"
#include "kernels/team_share.h"

namespace sapwood {
namespace {

// So few rows that every member norms and quantises all of them for itself sooner than it would
// meet the others at a barrier.
constexpr int kRowsEachNormsItself = 4;

}  // namespace

struct LayerWorkspace::Buffers {
  Buffers(const LayerShape& shape, int max_rows, int max_context, int threads);

  ScratchArray<float> normed;        // [rows][max(hidden)]
  ScratchArray<float> qkv;           // [rows][(heads + 2 kv_heads) * head_dim]
  ScratchArray<float> attended;      // [rows][heads * head_dim]
  ScratchArray<float> gated;         // [rows][intermediate]
  QuantizedScratch quantized;        // [rows][max(hidden, heads * head_dim)]
  QuantizedScratch quantized_gated;  // [rows][intermediate]; others may still read the one above
  std::vector<ScratchArray<float>> attention_scratch;  // one a thread
  std::vector<QuantizedScratch> own_quantized;  // one a thread, [kRowsEachNormsItself][hidden]
};

namespace {

size_t scratch_floats(const AttentionShape& shape, int max_context) {
  return static_cast<size_t>(kAttentionRows) * (shape.heads / shape.kv_heads) *
         attention_vector_floats(shape.head_dim, static_cast<size_t>(max_context) + 16);
}

int attended_width(const LayerShape& shape) {
  return shape.attention.heads * shape.attention.head_dim;
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
      quantized(max_rows, std::max(shape.hidden, attended_width(shape))),
      quantized_gated(max_rows, shape.intermediate) {
  for (int thread = 0; thread < threads; ++thread) {
    attention_scratch.emplace_back(scratch_floats(shape.attention, max_context) +
                                   static_cast<size_t>(kRowsEachNormsItself) * shape.hidden);
    own_quantized.emplace_back(kRowsEachNormsItself, shape.hidden);
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

  // The normed rows of the hidden state, quantised, for all members to read.
  QuantizedRows norm_and_quantize(const float* weight) {
    const int width = shape.hidden;
    if (rows() <= kRowsEachNormsItself) {
      float* normed = buffers.attention_scratch[thread].data();
      const QuantizedRows out = buffers.own_quantized[thread].rows(width);
      kernel.rms_norm(hidden, width, weight, shape.norm_epsilon, rows(), width, normed, width);
      kernel.quantize_rows(normed, width, width, 0, rows(), out);
      return out;
    }
    const auto [begin, end] = team.share(rows(), thread);
    float* normed = buffers.normed.data();
    const QuantizedRows out = buffers.quantized.rows(width);
    const size_t offset = static_cast<size_t>(begin) * width;
    kernel.rms_norm(hidden + offset, width, weight, shape.norm_epsilon, end - begin, width,
                    normed + offset, width);
    kernel.quantize_rows(normed, width, width, begin, end, out);
    team.barrier();
    return out;
  }

  void linear(const LinearWeights& linear, const QuantizedRows& x, bool accumulate, float* y) {
    const auto [begin, end] = panel_share(linear, team, thread);
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
    team.barrier();
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

  // Attention, and its output quantised by whoever computed it.
  QuantizedRows attend() {
    const AttentionShape& a = shape.attention;
    const int width = attended_width(shape);
    const bool whole_groups = a.head_dim % kActivationGroup == 0;
    const QuantizedRows out = buffers.quantized.rows(width);
    float* attended = buffers.attended.data();
    for_each_attention_run(a, rows(), team, thread, [&](const AttentionRun& run) {
      kernel.attention(a, batch, kv, run.head_begin, run.head_end, run.row_begin, run.row_end,
                       buffers.qkv.data(), qkv_width(a), attended, width,
                       buffers.attention_scratch[thread].data());
      if (whole_groups) {
        const int first = run.head_begin * a.head_dim;
        kernel.quantize_rows(attended + first, width, run.head_end * a.head_dim - first,
                             run.row_begin, run.row_end, out.from(first));
      }
    });
    team.barrier();
    if (!whole_groups) {
      const auto [row_begin, row_end] = team.share(rows(), thread);
      kernel.quantize_rows(attended, width, width, row_begin, row_end, out);
      team.barrier();
    }
    return out;
  }

  // activation(gate) * up, quantised by whoever computed it: a group of 32 is two pairs of panels.
  QuantizedRows gate_and_up(const QuantizedRows& x) {
    const int width = shape.intermediate;
    const QuantizedRows out = buffers.quantized_gated.rows(width);
    const auto [begin, end] = team.share(width / kActivationGroup, thread);
    const int first = begin * kActivationGroup;
    kernel.gated_linear(weights.gate_up, x, rows(), first / kPanel, end * 2, shape.activation,
                        buffers.gated.data(), width);
    kernel.quantize_rows(buffers.gated.data() + first, width, end * kActivationGroup - first, 0,
                         rows(), out.from(first));
    team.barrier();
    return out;
  }

  void run(bool only_store) {
    const QuantizedRows attention_in = norm_and_quantize(weights.attention_norm);
    linear(weights.qkv, attention_in, false, buffers.qkv.data());
    position_and_store();
    if (only_store) return;
    const QuantizedRows attended = attend();
    residual(weights.output, weights.attention_post_norm, attended);

    const QuantizedRows mlp_in = norm_and_quantize(weights.mlp_norm);
    const QuantizedRows gated = gate_and_up(mlp_in);
    residual(weights.down, weights.mlp_post_norm, gated);
  }
};

}  // namespace

void decoder_layer(const LayerShape& shape, const LayerWeights& weights, const RowBatch& batch,
                   const float* rotary, const KvLayerView& kv, float* hidden,
                   LayerWorkspace& workspace, ThreadTeam& team, int thread, bool only_store) {
  assert(batch.rows() <= workspace.max_rows());
  LayerPass pass{shape, weights, batch, rotary, kv, hidden, workspace.buffers(), team, thread};
  pass.run(only_store);
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
  output_head(norm_weight, norm_epsilon, {&head, 1}, hidden, hidden_size, output_rows, logits,
              head.outputs, workspace, team, thread);
}

void output_head(const float* norm_weight, float norm_epsilon, std::span<const LinearWeights> heads,
                 const float* hidden, int hidden_size, std::span<const int32_t> output_rows,
                 float* logits, int stride, LayerWorkspace& workspace, ThreadTeam& team,
                 int thread) {
  LayerWorkspace::Buffers& buffers = workspace.buffers();
  const KernelTable& kernel = kernels();
  const int rows = static_cast<int>(output_rows.size());
  const auto [row_begin, row_end] = team.share(rows, thread);
  for (int row = row_begin; row < row_end; ++row) {
    kernel.rms_norm(hidden + static_cast<size_t>(output_rows[row]) * hidden_size, hidden_size,
                    norm_weight, norm_epsilon, 1, hidden_size,
                    buffers.normed.data() + static_cast<size_t>(row) * hidden_size, hidden_size);
  }
  team_linear(heads, buffers.normed.data(), rows, logits, stride, buffers.quantized, team, thread);
}

}  // namespace sapwood
