// Output shapes from input shapes, symbols ("rows") carried along.
#pragma once

#include <onnxruntime_c_api.h>

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "operators/onnxruntime/port.h"
#include "operators/shapes.h"

namespace sapwood::ort {

// A size, a symbol for one, or neither (not known).
struct Dim {
  int64_t size = kAny;
  std::string symbol;

  Dim() = default;
  Dim(int64_t known) : size(known) {}  // NOLINT: implicit on purpose
};

class ShapeInference {
 public:
  static Status open(const OrtApi& api, OrtShapeInferContext* context, std::span<const Port> inputs,
                     std::span<const Port> outputs, ShapeInference* inference);

  // True if the input has a shape, even one with unknown sizes.
  bool has_shape(size_t input) const { return input < shapes_.size() && shapes_[input].known; }
  size_t rank(size_t input) const { return shapes_[input].dims.size(); }

  // Fails where the input is known not to have this shape.
  Status expect(size_t input, std::initializer_list<int64_t> shape) const;
  // That dimension of the input, not known if its shape is not.
  Dim dim(size_t input, size_t axis) const;

  Status set_output(size_t output, const std::vector<Dim>& shape);
  // The output has the input's shape, if that is known.
  Status copy_shape(size_t input, size_t output);

 private:
  struct Shape {
    bool known = false;
    std::vector<Dim> dims;
  };

  const OrtApi* api_ = nullptr;
  OrtShapeInferContext* context_ = nullptr;
  std::span<const Port> inputs_;
  std::span<const Port> outputs_;
  std::vector<Shape> shapes_;
};

}  // namespace sapwood::ort
