// Models of a well-known size with random weights: what a pass costs depends on shapes alone, so a
// model can be measured without having it.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "model/bundle.h"

namespace sapwood {

// "smollm2-135m", "qwen2.5-0.5b", "qwen2.5-1.5b", "llama-3.2-1b".
std::span<const std::string_view> known_shapes();

// A bundle in memory (nothing is written): layers in int4_g32_min, embedding and head in int8_g32.
// The hidden state and logits are finite; the text means nothing. About 0.7 bytes a weight.
Result<std::shared_ptr<const Bundle>> random_model(std::string_view shape);

}  // namespace sapwood
