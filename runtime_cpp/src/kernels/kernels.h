// The kernels, one table of functions per instruction set.
//
// Every entry is a pure function over plain memory and has the same bits in every table, `scalar`
// being the readable twin. Work is cut by the caller: a kernel computes the rows, panels or heads
// it is told to, so that a thread team can share it without the kernel knowing.
//
// Units: floats are single precision; halves are raw IEEE bits; strides are in elements.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kv_layout.h"
#include "kernels/linear.h"
#include "kernels/row_batch.h"
#include "kernels/row_plan.h"

namespace sapwood {

enum class Activation { kSilu, kGeluTanh };

// Everything attention needs beside q and the cache.
struct AttentionShape {
  int heads = 0;  // a multiple of kv_heads: query head h reads kv head h / (heads / kv_heads)
  int kv_heads = 0;
  int head_dim = 0;   // a multiple of 16
  float scale = 0.f;  // multiplies q . k
  int window = 0;     // a row at position p sees positions above p - window; 0: all
};

struct KernelTable {
  // "scalar", "avx2", "avx2-vnni", "avx512-vnni", "neon", "neon-dotprod" or "neon-i8mm"
  std::string_view name;

  // The blocks of rows that linear and gated_linear have loops for, by rising rows; the first has
  // one row. Which are used is the weights' plan (row_plan.h).
  std::span<const RowBlock> row_blocks;

  // out = weight * x / sqrt(mean(x^2) + epsilon), for rows x[row * stride ...]; in place allowed.
  void (*rms_norm)(const float* x, int stride, const float* weight, float epsilon, int rows,
                   int columns, float* out, int out_stride);

  // Symmetric int8 per group of 32: scale = max|x| / 127, codes rounded to nearest even. Rows
  // row_begin .. row_end of x and out; columns, a multiple of 32, may be fewer than out.inputs.
  void (*quantize_rows)(const float* x, int stride, int columns, int row_begin, int row_end,
                        const QuantizedRows& out);

  // y[row * stride + output] (= or +=) for panels panel_begin .. panel_end, outputs past
  // weights.outputs are not written. rows >= 1, any number.
  void (*linear)(const LinearWeights& weights, const QuantizedRows& x, int rows, int panel_begin,
                 int panel_end, bool accumulate, float* y, int stride);

  // Gate and up interleaved by panels (panel 2i gate, 2i + 1 up of the same 16 units):
  // y[row * stride + 16 i + lane] = activation(gate) * up, for pairs pair_begin .. pair_end.
  void (*gated_linear)(const LinearWeights& weights, const QuantizedRows& x, int rows,
                       int pair_begin, int pair_end, Activation activation, float* y, int stride);

  // The row's dequantised weights: out[0 .. inputs) = table[token] * scale. For embeddings.
  void (*embed)(const LinearWeights& table, int token, float scale, float* out);

  // Rotates pairs (i, i + head_dim / 2) of one head in place; rotary = cos[half], sin[half].
  void (*rotate)(float* x, const float* rotary, int head_dim);

  // Writes one row's K and V of one kv head into its slot, rounding to nearest even; a null k or v
  // is left as it is.
  void (*store_kv)(const KvLayerView& kv, int kv_head, int slot, const float* k, const float* v);

  // Attention of query heads head_begin .. head_end, which share a kv head, for rows row_begin ..
  // row_end, over what each row sees (RowBatch), in position order. q and out are [rows][stride],
  // head h at h * head_dim. `scratch` holds attention_scratch_floats(...) floats.
  void (*attention)(const AttentionShape& shape, const RowBatch& batch, const KvLayerView& kv,
                    int head_begin, int head_end, int row_begin, int row_end, const float* q,
                    int q_stride, float* out, int out_stride, float* scratch);

  // log_softmax over n logits, in place is allowed; returns the log of the normaliser.
  float (*log_softmax)(const float* logits, int n, float* out);

  // For measuring the machine. peak_dots: rounds of int8 dot products between registers, returns
  // the multiply-accumulates done. read_memory: reads every byte once. Both results must be used.
  int64_t (*peak_dots)(int64_t rounds, int32_t* sink);
  float (*read_memory)(const uint8_t* data, size_t bytes);
};

// The scratch one attention call needs, in floats.
size_t attention_scratch_floats(const AttentionShape& shape, const RowBatch& batch, int rows);

// cos and sin of position * inverse_frequency for each row: out[row][cos half | sin half].
// Computed in double and rounded once, so that every platform gets the same table.
void rotary_table(std::span<const int32_t> positions, std::span<const float> inverse_frequencies,
                  float* out);

// Tables this machine can run, scalar first, best last.
std::span<const KernelTable* const> runnable_kernels();

// The best table, or the one named by set_kernels / the environment variable SAPWOOD_KERNELS.
const KernelTable& kernels();
bool set_kernels(std::string_view name);  // false: unknown, or this machine cannot run it

}  // namespace sapwood
