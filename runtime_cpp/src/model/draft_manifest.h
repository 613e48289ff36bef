// A draft folder's manifest.json: what was trained to draft for a target, checked before any other
// file is touched.
//
// Example: {"schema_version": 1, "kind": "draft", "name": "...", "target": {"family": "llama",
// "hidden_size": 576, ...}, "draft": {"kind": "head", "feature_layers": [3, 15, 27],
// "subset": 8192, "spec": {...}, "weights": "draft.weights", "tensors": {...}}, "files": [...]}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "model/manifest.h"
#include "model/spec.h"
#include "model/tensors.h"

namespace sapwood {

enum class DraftKind {
  kHead,           // one decoder layer that reads the target's hidden states and its own
  kParallelHeads,  // guesses of several depths from the last verified position, path unseen
};
std::string_view draft_kind_name(DraftKind kind);  // "head", "parallel_heads"

// What a draft was trained for, and whose hidden states and token ids it therefore understands.
struct DraftTarget {
  std::string name;
  std::string family;
  int hidden_size = 0;
  int layers = 0;
  int vocabulary_size = 0;
  Sha256Digest tokenizer_sha256 = {};
};

struct DraftManifest {
  static constexpr int kMostFeatureLayers = 16;
  static constexpr int kMostParallel = 16;

  std::string name;
  std::string sapwood_version;  // that made it
  DraftTarget target;
  DraftKind kind = DraftKind::kHead;
  std::vector<int> feature_layers;  // of the target, counted from 1, ascending
  int subset = 0;                   // tokens it can guess, at most all of the target's
  ModelSpec spec;                   // of its one layer; vocabulary_size is `subset`
  int uncertainty_units = 0;        // of the uncertainty network; 0: there is none
  int parallel = 0;                 // kParallelHeads: depths that it guesses
  std::string weights_file;
  TensorMap tensors;             // exactly tensors_of_draft(*this)
  std::vector<FileEntry> files;  // all but the manifest

  int feature_size() const {  // numbers of a position's hidden states, side by side
    return static_cast<int>(feature_layers.size()) * spec.hidden_size;
  }
};

// Every tensor, none optional, as tensors_of().
std::vector<TensorShape> tensors_of_draft(const DraftManifest& manifest);

// As parse_manifest(). kInvalidArgument for a document that is no draft's.
Result<DraftManifest> parse_draft_manifest(std::string_view text, const std::string& where);

}  // namespace sapwood
