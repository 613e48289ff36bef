// One call of a kernel by ExecuTorch: its values by position, checked. Allocates nothing unless it
// fails.
//
// ExecuTorch hands a kernel the values of its schema in order, outputs last. Their number and kind
// are what the .pte file says, so nothing is taken on trust.
#pragma once

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/span.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/linear.h"
#include "operators/cache_arguments.h"
#include "operators/shapes.h"

namespace sapwood::executorch {

using ::executorch::aten::ScalarType;
using ::executorch::runtime::EValue;
using operators::kAny;
using operators::Tensor;

class Arguments {
 public:
  static constexpr size_t kMost = 40;     // values of one operator
  static constexpr size_t kMostAxes = 4;  // of a tensor

  // `names` are those of the schema's values, outputs included; the stack may hold more.
  Arguments(::executorch::runtime::Span<EValue*> stack, std::span<const char* const> names)
      : stack_(stack), names_(names) {}

  bool has(size_t index) const { return !stack_[index]->isNone(); }
  const char* name(size_t index) const { return names_[index]; }

  // A tensor of this type, whatever its shape, or of this shape (kAny: any size).
  Status tensor(size_t index, ScalarType type, Tensor* tensor);
  Status tensor(size_t index, ScalarType type, std::initializer_list<int64_t> shape,
                Tensor* tensor);
  // A float vector; null where the call leaves it out.
  Status vector(size_t index, int length, const float** data);
  // Packed bytes, in the format that the value at `format_index` names.
  Status packed(size_t index, size_t format_index, int outputs, int inputs, LinearWeights* weights);
  // The six values from `first`: slots, context_slots, path_slots, path_ranges, and the layer's
  // keys and values, which the rows are written to.
  Status cache(size_t first, int rows, int kv_heads, int head_dim, operators::Resources& resources,
               operators::CacheCall* call);

  Status integer(size_t index, int minimum, int* value) const;
  Status real(size_t index, float* value) const;
  Status text(size_t index, std::string_view* value) const;
  Status activation(size_t index, Activation* value) const;

  // An output's memory, of this type and shape.
  template <typename T>
  Status output(size_t index, std::span<const int64_t> shape, T** data) {
    void* memory = nullptr;
    SAPWOOD_TRY(output_bytes(index, type_of<T>(), shape, &memory));
    *data = static_cast<T*>(memory);
    return Status::okay();
  }
  template <typename T>
  Status output(size_t index, std::initializer_list<int64_t> shape, T** data) {
    return output(index, std::span<const int64_t>(shape.begin(), shape.size()), data);
  }

 private:
  template <typename T>
  static constexpr ScalarType type_of() {
    if constexpr (std::is_same_v<T, float>) return ScalarType::Float;
    if constexpr (std::is_same_v<T, int32_t>) return ScalarType::Int;
    if constexpr (std::is_same_v<T, uint8_t>) return ScalarType::Byte;
  }
  Status output_bytes(size_t index, ScalarType type, std::span<const int64_t> shape, void** data);
  Status wrong(size_t index, const std::string& what) const;

  ::executorch::runtime::Span<EValue*> stack_;
  std::span<const char* const> names_;
  std::array<std::array<int64_t, kMostAxes>, kMost> sizes_;  // that the tensors' shapes point to
};

}  // namespace sapwood::executorch
