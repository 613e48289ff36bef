// Random tensors of a weights file, with what a manifest says of them and of files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "model/tensors.h"

namespace sapwood {

class TestWeights {
 public:
  // Same arguments, same bytes. wide_format: of "embedding" and "head".
  TestWeights(std::string layer_format, std::string wide_format, uint32_t seed);

  // Of a vector of rotary frequencies; 1e4 for others.
  void set_rope_base(const std::string& name, double base);
  // Of a vector of integers, which ascends below it.
  void set_limit(int limit) { limit_ = limit; }

  // Sizes keep hidden states and logits moderate.
  void add(const TensorShape& tensor);

  const nlohmann::json& tensors() const { return tensors_; }  // as a manifest has them
  const std::string& bytes() const { return bytes_; }

 private:
  float uniform(float low, float high);
  template <typename Number>
  void append(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_vector(const TensorShape& tensor);
  void add_integers(int count);
  void add_matrix(const TensorShape& tensor, const LinearFormat& format);

  const std::string layer_format_;
  const std::string wide_format_;
  std::mt19937 random_;
  std::string rope_name_;
  double rope_base_ = 1e4;
  int limit_ = 0;
  std::string bytes_;
  nlohmann::json tensors_ = nlohmann::json::object();
};

// A file as a manifest lists it.
nlohmann::json file_entry(const std::string& name, const std::string& contents);

}  // namespace sapwood
