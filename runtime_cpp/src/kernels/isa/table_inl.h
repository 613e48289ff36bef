// Builds the KernelTable of one instruction set. A .cc file defines SAPWOOD_ISA, includes its
// lanes_*.h and then this file, which instantiates every kernel over those lanes.
#pragma once

#include "kernels/embedding.h"
#include "kernels/isa/attention_inl.h"
#include "kernels/isa/elementwise_inl.h"
#include "kernels/isa/linear_inl.h"
#include "kernels/kernels.h"

namespace sapwood::SAPWOOD_ISA {

constexpr KernelTable make_table(std::string_view name) {
  return {name,   kRowBlocks, rms_norm,  quantize_rows, linear,    gated_linear, embed_token,
          rotate, store_kv,   attention, log_softmax,   peak_dots, read_memory};
}

}  // namespace sapwood::SAPWOOD_ISA
