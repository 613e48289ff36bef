// Tree attention over KV slots (row_batch.h), by the format of the cache. Included once per
// instruction set.
#pragma once

#include "kernels/isa/attention_float16_inl.h"
#include "kernels/isa/attention_int8_inl.h"

namespace sapwood::SAPWOOD_ISA {

inline void attention(const AttentionShape& shape, const RowBatch& batch, const KvLayerView& kv,
                      int head_begin, int head_end, int row_begin, int row_end, const float* q,
                      int q_stride, float* out, int out_stride, float* scratch) {
  const auto attend = kv.layout.format == KvFormat::kInt8 ? attention_int8 : attention_float16;
  attend(shape, batch, kv, head_begin, head_end, row_begin, row_end, q, q_stride, out, out_stride,
         scratch);
}

inline void store_kv(const KvLayerView& kv, int kv_head, int slot, const float* k, const float* v) {
  const auto store_in = kv.layout.format == KvFormat::kInt8 ? store_int8 : store_float16;
  store_in(kv, kv_head, slot, k, v);
}

}  // namespace sapwood::SAPWOOD_ISA
