// What a decoder of the Llama, Qwen and Gemma families is made of; read from a bundle's manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/decoder_layer.h"

namespace sapwood {

struct ModelSpec {
  std::string family;  // "llama", "qwen2", "qwen3", "gemma3"
  int vocabulary_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int context_length = 0;  // positions the model was made for
  float norm_epsilon = 1e-5f;
  float attention_scale = 0.f;
  float embedding_scale = 1.f;
  Activation activation = Activation::kSilu;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool post_norms = false;
  bool tied_head = false;
  int sliding_window = 0;
  std::vector<bool> layer_is_sliding;  // [layers]; a sliding layer uses the window and rope "local"

  LayerShape layer_shape(int layer) const;
};

}  // namespace sapwood
