// Tiny bundles of random weights, for tests that need a model but not its meaning.
//
//   const auto path = write_test_bundle(test_bundle_options("gemma3"));
//   ASSERT_TRUE(path.ok()) << path.status().message();
//   const auto bundle = Bundle::open(path.value());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/spec.h"

namespace sapwood {

struct TestBundleOptions {
  ModelSpec spec;  // test_bundle_options fills it; change what the test needs
  std::string layer_format = "int4_g32_min";
  std::string embedding_format = "int8_g32";  // and the head's
  uint32_t seed = 1;                          // same options and seed: same bytes
  std::string folder;                         // written into; empty: a new temporary one
};

// A small model with the options of that family:
// "qwen2" has biases, "qwen3" q/k norms, "gemma3" post norms, sliding layers of window 8,
// a scaled embedding and GELU. 64 wide, 160 tokens. Anything else: as "llama".
TestBundleOptions test_bundle_options(std::string_view family);

// Writes a valid bundle and returns its folder. The hidden state and logits stay of moderate size.
Result<std::string> write_test_bundle(const TestBundleOptions& options);

}  // namespace sapwood
