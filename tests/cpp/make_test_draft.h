// Tiny drafts of random weights for tiny bundles (make_test_bundle.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/draft_manifest.h"

namespace sapwood {

struct TestDraftOptions {
  DraftKind kind = DraftKind::kHead;
  std::vector<int> feature_layers = {1, 2, 4};
  int subset = 90;  // tokens
  int uncertainty_units = 8;
  int parallel = 3;  // kParallelHeads
  std::string layer_format = "int4_g32_min";
  std::string head_format = "int8_g32";
  bool head_of_target = false;  // its rows are the target's, which must be of head_format
  uint32_t seed = 5;
};

// Writes a valid draft for the bundle in `target` and returns its folder.
Result<std::string> write_test_draft(const std::string& target, const TestDraftOptions& options);

}  // namespace sapwood
