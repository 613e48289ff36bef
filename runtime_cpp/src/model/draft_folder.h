// A draft folder, opened: its manifest checked, its weights mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file_map.h"
#include "base/status.h"
#include "model/bundle.h"
#include "model/draft_manifest.h"
#include "model/weights.h"
#include "tree/uncertainty_head.h"

namespace sapwood {

// Movable; pointers and spans it gave stay valid until it is destroyed.
class DraftFolder {
 public:
  // Checked as a bundle is, and that the token ids ascend and are the target's.
  static Result<DraftFolder> open(const std::string& path, const BundleOptions& options = {});

  const DraftManifest& manifest() const { return manifest_; }
  const std::string& folder() const { return path_; }

  Weights tensors() const { return {manifest_.tensors, map_.bytes()}; }
  // Of every entry of the draft's law, the token: [subset], ascending.
  std::span<const int32_t> vocabulary_ids() const { return tensors().integers("vocabulary_ids"); }

 private:
  DraftFolder() = default;

  std::string path_;
  DraftManifest manifest_;
  FileMap map_;
};

// Whether the folder's manifest calls it a draft; a manifest that cannot be read does not.
bool is_draft_folder(const std::string& path);

// kInvalidArgument naming the draft and what differs, if it was trained for a target of another
// shape or tokenizer.
Status check_fits(const DraftFolder& draft, const Bundle& target);

// kInvalidArgument for a draft of another kind.
Status check_kind(const DraftFolder& draft, DraftKind kind);

// Its uncertainty network, if it has one.
Result<std::optional<UncertaintyHead>> uncertainty_head_of(const DraftFolder& draft);

}  // namespace sapwood
