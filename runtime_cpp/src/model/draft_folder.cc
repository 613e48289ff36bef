#include "model/draft_folder.h"

#include <utility>

#include "base/json.h"

namespace sapwood {
namespace {

constexpr const char* kKind = "draft";

Result<DraftManifest> read_manifest_file(const std::string& path) {
  const std::string file = path + "/manifest.json";
  const Result<std::string> text = read_file(file, kMaxManifestBytes);
  if (text.ok()) return parse_draft_manifest(text.value(), file);
  if (text.status().code() != Code::kNotFound) return text.status();
  return Status(Code::kNotFound, path + ": is not a draft, there is no manifest.json in it");
}

Status check_vocabulary(const DraftFolder& draft, const std::string& where) {
  int32_t before = -1;
  for (const int32_t id : draft.vocabulary_ids()) {
    if (id <= before || id >= draft.manifest().target.vocabulary_size) {
      return Status(Code::kCorrupt,
                    where + ": vocabulary_ids do not ascend inside the target's vocabulary of " +
                        std::to_string(draft.manifest().target.vocabulary_size) +
                        "; export the draft again");
    }
    before = id;
  }
  return Status::okay();
}

}  // namespace

Result<DraftFolder> DraftFolder::open(const std::string& path, const BundleOptions& options) {
  Result<DraftManifest> manifest = read_manifest_file(path);
  if (!manifest.ok()) return manifest.status();
  DraftFolder draft;
  draft.path_ = path;
  draft.manifest_ = std::move(manifest).value();
  for (const FileEntry& entry : draft.manifest_.files) {
    Result<FileMap> map = map_listed_file(path, entry, options.verify_checksums, kKind);
    if (!map.ok()) return map.status();
    if (entry.name == draft.manifest_.weights_file) draft.map_ = std::move(map).value();
  }
  const std::string where = path + "/" + draft.manifest_.weights_file;
  SAPWOOD_TRY(draft.tensors().check_finite(options.verify_checksums, where, kKind));
  SAPWOOD_TRY(check_vocabulary(draft, where));
  return draft;
}

bool is_draft_folder(const std::string& path) {
  const std::string file = path + "/manifest.json";
  const Result<std::string> text = read_file(file, kMaxManifestBytes);
  if (!text.ok()) return false;
  const Result<nlohmann::json> root = parse_json(text.value(), file);
  std::string kind;
  return root.ok() && root.value().is_object() &&
         JsonObject(root.value(), file).read("kind", &kind).ok() && kind == "draft";
}

Status check_fits(const DraftFolder& draft, const Bundle& target) {
  const DraftTarget& wanted = draft.manifest().target;
  const ModelSpec& spec = target.spec();
  const auto differs = [&](const std::string& what, const std::string& trained,
                           const std::string& found) {
    return Status(Code::kInvalidArgument, "the draft " + draft.folder() + ": was trained for " +
                                              printable(wanted.name) + " with " + what + ' ' +
                                              trained + ", this target has " + found +
                                              "; name a draft that was trained for it");
  };
  const auto number = [&](const char* what, int trained, int found) {
    return trained == found ? Status::okay()
                            : differs(what, std::to_string(trained), std::to_string(found));
  };
  if (wanted.family != spec.family) return differs("the family", wanted.family, spec.family);
  SAPWOOD_TRY(number("the hidden size", wanted.hidden_size, spec.hidden_size));
  SAPWOOD_TRY(number("so many layers:", wanted.layers, spec.layers));
  SAPWOOD_TRY(number("a vocabulary of", wanted.vocabulary_size, spec.vocabulary_size));
  // Its positions turn at the target's frequencies.
  SAPWOOD_TRY(number("heads of", draft.manifest().spec.head_dim, spec.head_dim));
  const FileEntry* tokenizer = target.manifest().file(target.tokenizer().file);
  if (tokenizer == nullptr || tokenizer->sha256 != wanted.tokenizer_sha256) {
    return differs("a tokenizer whose checksum begins",
                   hexadecimal(wanted.tokenizer_sha256).substr(0, 12),
                   tokenizer == nullptr ? "none" : hexadecimal(tokenizer->sha256).substr(0, 12));
  }
  return Status::okay();
}

Status check_kind(const DraftFolder& draft, DraftKind kind) {
  if (draft.manifest().kind == kind) return Status::okay();
  return Status(Code::kInvalidArgument, "the draft " + draft.folder() + ": is of the kind " +
                                            std::string(draft_kind_name(draft.manifest().kind)) +
                                            ", not " + std::string(draft_kind_name(kind)) +
                                            "; choose the drafter of its kind");
}

Result<std::optional<UncertaintyHead>> uncertainty_head_of(const DraftFolder& draft) {
  if (draft.manifest().uncertainty_units == 0) return std::optional<UncertaintyHead>();
  const Weights tensors = draft.tensors();
  Result<UncertaintyHead> head = UncertaintyHead::create(
      tensors.values("uncertainty.w1"), tensors.values("uncertainty.b1"),
      tensors.values("uncertainty.w2"), tensors.values("uncertainty.b2").front());
  if (!head.ok()) return head.status();
  return std::optional<UncertaintyHead>(std::move(head).value());
}

}  // namespace sapwood
