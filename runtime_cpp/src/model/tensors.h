// Which tensors a model of a given spec is made of: the names and shapes a bundle must hold.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "model/spec.h"

namespace sapwood {

struct TensorShape {
  std::string name;       // "layers.3.qkv"
  bool matrix = false;    // packed
  int outputs = 0;        // of a matrix or a table; the length of a vector
  int inputs = 0;         // of a matrix, or of a table of plain numbers; 0: a vector
  bool integers = false;  // int32 instead of float32, where it is not packed
};

// Every tensor, none optional: what the spec does not ask for is not there. Matrices are packed
// (kernels/linear.h), vectors are float32. The spec must have passed check_spec.
std::vector<TensorShape> tensors_of(const ModelSpec& spec);

// Of one decoder layer, each with `prefix` in front of its name: "layers.3.", "layer.".
void add_layer_tensors(const ModelSpec& spec, const std::string& prefix,
                       std::vector<TensorShape>* tensors);

// "layers.<layer>.<part>"
std::string layer_tensor(int layer, const std::string& part);

// The rules that sizes must keep beyond their ranges, for the kernels to be able to run them. The
// message names the field first: "heads: 9 is not a multiple of kv_heads (2)".
Status check_spec(const ModelSpec& spec);

}  // namespace sapwood
