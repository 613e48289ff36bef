// Tensor shapes: views of them, and the comparison behind every "has shape ..., not ..." message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/status.h"

namespace sapwood::operators {

inline constexpr int64_t kAny =
    -1;  // in an expected shape: any size; in a given one: not known yet

// A tensor that someone else owns.
struct Tensor {
  const void* data = nullptr;
  std::span<const int64_t> shape;

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  int64_t elements() const {
    int64_t product = 1;
    for (const int64_t size : shape) product *= size;
    return product;
  }
  std::span<const int32_t> indices() const {
    return {as<int32_t>(), static_cast<size_t>(elements())};
  }
};

inline bool shape_fits(std::span<const int64_t> given, std::span<const int64_t> expected) {
  if (given.size() != expected.size()) return false;
  for (size_t axis = 0; axis < given.size(); ++axis) {
    const bool open = given[axis] == kAny || expected[axis] == kAny;
    if (!open && given[axis] != expected[axis]) return false;
  }
  return true;
}

// "[3, ?, 64]"
inline std::string describe_shape(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += shape[axis] == kAny ? "?" : std::to_string(shape[axis]);
  }
  return text + "]";
}

inline std::string describe_misfit(const char* input, std::span<const int64_t> given,
                                   std::span<const int64_t> expected) {
  return std::string("input '") + input + "' has shape " + describe_shape(given) + ", not " +
         describe_shape(expected);
}

inline Status expect_shape(const char* input, const Tensor& tensor,
                           std::initializer_list<int64_t> shape) {
  const std::span<const int64_t> expected(shape.begin(), shape.size());
  if (shape_fits(tensor.shape, expected)) return Status::okay();
  return Status(Code::kInvalidArgument, describe_misfit(input, tensor.shape, expected));
}

}  // namespace sapwood::operators
