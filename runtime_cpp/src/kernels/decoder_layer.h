// The fused operators: one decoder layer, the token embedding and the output head, over a team.
//
// Both hosts call these and nothing else, which is why they agree bit for bit: the native host in a
// loop inside one ThreadTeam::run, the ONNX Runtime operators one run per operator.
#pragma once

#include <cstddef>
#include <span>

#include "base/thread_team.h"
#include "kernels/kernels.h"

namespace sapwood {

struct LayerShape {
  int hidden = 0;
  int intermediate = 0;
  AttentionShape attention;
  float norm_epsilon = 1e-5f;
  Activation activation = Activation::kSilu;
};

// Optional parts are null. Norm weights are effective multipliers (Gemma's 1 + w already added).
struct LayerWeights {
  const float* attention_norm = nullptr;       // [hidden]
  const float* attention_post_norm = nullptr;  // [hidden], optional (Gemma): norm of the output
  const float* mlp_norm = nullptr;             // [hidden]
  const float* mlp_post_norm = nullptr;        // [hidden], optional (Gemma)
  const float* qkv_bias = nullptr;  // [(heads + 2 kv_heads) * head_dim], optional (Qwen2)
  const float* q_norm = nullptr;    // [head_dim], optional (Qwen3, Gemma)
  const float* k_norm = nullptr;    // [head_dim], optional
  LinearWeights qkv;                // outputs: q heads, k heads, v heads
  LinearWeights output;             // inputs heads * head_dim
  LinearWeights gate_up;  // outputs 2 * intermediate, interleaved by panels: 16 gate, 16 up, ...
  LinearWeights down;     // inputs intermediate
};

// Scratch for up to `max_rows` rows and `max_context` visible tokens. Allocates in the constructor
// only. Not shared between concurrent calls.
class LayerWorkspace {
 public:
  LayerWorkspace(const LayerShape& shape, int max_rows, int max_context, int threads);
  ~LayerWorkspace();
  LayerWorkspace(const LayerWorkspace&) = delete;
  LayerWorkspace& operator=(const LayerWorkspace&) = delete;

  int max_rows() const { return max_rows_; }
  int max_context() const { return max_context_; }

  struct Buffers;  // decoder_layer.cc
  Buffers& buffers() { return *buffers_; }

 private:
  int max_rows_;
  int max_context_;
  Buffers* buffers_;
};

// hidden [rows][shape.hidden] is read and replaced. rotary [rows][head_dim] comes from
// rotary_table. Called by every member of the team with its index; ends with a barrier. K and V of
// the rows are written to their slots before they are read. `only_store`: stops there and leaves
// `hidden` as it is, for a last layer whose output nobody asked for.
void decoder_layer(const LayerShape& shape, const LayerWeights& weights, const RowBatch& batch,
                   const float* rotary, const KvLayerView& kv, float* hidden,
                   LayerWorkspace& workspace, ThreadTeam& team, int thread,
                   bool only_store = false);

// hidden[row] = embedding[tokens[row]] * scale. Ends with a barrier.
void token_embedding(const LinearWeights& table, std::span<const int32_t> tokens, float scale,
                     float* hidden, ThreadTeam& team, int thread);

// logits [output_rows][head.outputs] of the final norm and head, for the rows asked for only.
// Ends with a barrier.
void output_head(const float* norm_weight, float norm_epsilon, const LinearWeights& head,
                 const float* hidden, int hidden_size, std::span<const int32_t> output_rows,
                 float* logits, LayerWorkspace& workspace, ThreadTeam& team, int thread);

// The same of several heads, side by side in every row of logits [output_rows][stride]: team_linear
// has the terms.
void output_head(const float* norm_weight, float norm_epsilon, std::span<const LinearWeights> heads,
                 const float* hidden, int hidden_size, std::span<const int32_t> output_rows,
                 float* logits, int stride, LayerWorkspace& workspace, ThreadTeam& team,
                 int thread);

}  // namespace sapwood
