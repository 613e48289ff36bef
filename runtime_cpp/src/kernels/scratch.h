// Memory that the operators work in: made once, aligned, uninitialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "kernels/linear.h"

namespace sapwood {

template <typename T>
class ScratchArray {
 public:
  explicit ScratchArray(size_t count)
      : data_(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{kAlignment}))) {}
  ScratchArray(ScratchArray&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  ~ScratchArray() { ::operator delete (data_, std::align_val_t{kAlignment}); }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  static constexpr size_t kAlignment = 64;
  T* data_;
};

// Room for the quantised activations of so many rows.
struct QuantizedScratch {
  QuantizedScratch(size_t rows, size_t inputs)
      : codes(rows * inputs),
        scales(rows * inputs / kActivationGroup),
        sums(rows * inputs / kActivationGroup),
        scaled_sums(rows * inputs / kActivationGroup) {}

  // inputs: at most what it was made for.
  QuantizedRows rows(int inputs) {
    return {codes.data(), scales.data(), sums.data(), scaled_sums.data(), inputs};
  }

  ScratchArray<int8_t> codes;
  ScratchArray<float> scales;
  ScratchArray<int32_t> sums;
  ScratchArray<float> scaled_sums;
};

}  // namespace sapwood
