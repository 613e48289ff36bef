#include "model/draft_manifest.h"

#include <array>
#include <utility>

#include "model/manifest_parts.h"

namespace sapwood {
namespace {

constexpr int kMaxUncertaintyUnits = 1 << 10;
constexpr std::array<DraftKind, 2> kKinds = {DraftKind::kHead, DraftKind::kParallelHeads};

Status read_draft_target(const JsonObject& root, DraftTarget* target) {
  JsonObject object;
  SAPWOOD_TRY(root.read("target", &object));
  SAPWOOD_TRY(object.read("name", &target->name));
  SAPWOOD_TRY(read_family(object, &target->family));
  SAPWOOD_TRY(object.read("hidden_size", 1, kMaxSize, &target->hidden_size));
  SAPWOOD_TRY(object.read("layers", 1, kMaxLayers, &target->layers));
  SAPWOOD_TRY(object.read("vocabulary_size", 1, kMaxVocabulary, &target->vocabulary_size));
  return read_digest(object, "tokenizer_sha256", &target->tokenizer_sha256);
}

Status read_kind(const JsonObject& draft, DraftManifest* manifest) {
  std::string name;
  SAPWOOD_TRY(draft.read("kind", &name));
  for (const DraftKind kind : kKinds) {
    if (name != draft_kind_name(kind)) continue;
    manifest->kind = kind;
    const bool parallel = kind == DraftKind::kParallelHeads;
    return draft.read("parallel", parallel ? 1 : 0, parallel ? DraftManifest::kMostParallel : 0,
                      &manifest->parallel);
  }
  return draft.error("kind",
                     printable(name) +
                         " is not a kind of draft this build knows (head, "
                         "parallel_heads): update Sapwood",
                     Code::kUnsupported);
}

Status read_feature_layers(const JsonObject& draft, DraftManifest* manifest) {
  std::vector<int>& layers = manifest->feature_layers;
  SAPWOOD_TRY(draft.read("feature_layers", 1, manifest->target.layers, &layers));
  if (layers.empty() || layers.size() > DraftManifest::kMostFeatureLayers) {
    return draft.error("feature_layers", "has " + std::to_string(layers.size()) + " layers; 1 to " +
                                             std::to_string(DraftManifest::kMostFeatureLayers) +
                                             " are possible");
  }
  for (size_t i = 1; i < layers.size(); ++i) {
    if (layers[i] <= layers[i - 1]) return draft.error("feature_layers", "does not ascend");
  }
  return Status::okay();
}

Status read_draft_spec(const JsonObject& draft, DraftManifest* manifest) {
  ModelSpec& spec = manifest->spec;
  JsonObject object;
  SAPWOOD_TRY(draft.read("spec", &object));
  spec.family = manifest->target.family;
  spec.vocabulary_size = manifest->subset;
  spec.hidden_size = manifest->target.hidden_size;
  spec.layers = 1;
  spec.layer_is_sliding = {false};
  SAPWOOD_TRY(read_layer_sizes(object, &spec));
  for (const auto& [key, flag] : {std::pair{"qkv_bias", &spec.qkv_bias},
                                  {"qk_norm", &spec.qk_norm},
                                  {"post_norms", &spec.post_norms}}) {
    if (object.has(key)) SAPWOOD_TRY(object.read(key, flag));
  }
  const Status rules = check_spec(spec);
  return rules.ok() ? rules : object.error(rules);
}

Status read_draft(const JsonObject& root, DraftManifest* manifest) {
  JsonObject draft;
  SAPWOOD_TRY(root.read("draft", &draft));
  SAPWOOD_TRY(read_kind(draft, manifest));
  SAPWOOD_TRY(read_feature_layers(draft, manifest));
  SAPWOOD_TRY(draft.read("subset", 1, manifest->target.vocabulary_size, &manifest->subset));
  SAPWOOD_TRY(read_draft_spec(draft, manifest));
  SAPWOOD_TRY(
      draft.read("uncertainty_units", 0, kMaxUncertaintyUnits, &manifest->uncertainty_units));
  SAPWOOD_TRY(read_listed_file(draft, "weights", manifest->files, &manifest->weights_file));
  return read_tensors(draft, tensors_of_draft(*manifest),
                      find_file(manifest->files, manifest->weights_file)->bytes,
                      "a draft of this kind", &manifest->tensors);
}

Status read_draft_manifest(const JsonObject& root, const std::string& where,
                           DraftManifest* manifest) {
  std::string kind;
  if (!root.has("kind"))
    return root.error("kind", "is missing: this is no draft's manifest", Code::kInvalidArgument);
  SAPWOOD_TRY(root.read("kind", &kind));
  if (kind != "draft") {
    return root.error("kind", printable(kind) + " is not \"draft\"", Code::kInvalidArgument);
  }
  SAPWOOD_TRY(check_version(root, where));
  SAPWOOD_TRY(root.read("name", &manifest->name));
  SAPWOOD_TRY(root.read("sapwood_version", &manifest->sapwood_version));
  SAPWOOD_TRY(read_files(root, &manifest->files));
  SAPWOOD_TRY(read_draft_target(root, &manifest->target));
  return read_draft(root, manifest);
}

}  // namespace

std::string_view draft_kind_name(DraftKind kind) {
  return kind == DraftKind::kHead ? "head" : "parallel_heads";
}

std::vector<TensorShape> tensors_of_draft(const DraftManifest& manifest) {
  const int hidden = manifest.spec.hidden_size;
  std::vector<TensorShape> tensors = {
      {"fuse", true, hidden, manifest.feature_size()},
      {"input", true, hidden, 2 * hidden},
      {"embedding_norm", false, hidden, 0},
      {"feature_norm", false, hidden, 0},
      {"output_norm", false, hidden, 0},
      {"head", true, manifest.subset, hidden},
      {"vocabulary_ids", false, manifest.subset, 0, true},
  };
  if (manifest.kind == DraftKind::kHead) add_layer_tensors(manifest.spec, "layer.", &tensors);
  for (int depth = 0; depth < manifest.parallel; ++depth) {
    tensors.push_back({"parallel." + std::to_string(depth), true, hidden, hidden});
  }
  if (const int units = manifest.uncertainty_units; units > 0) {
    tensors.push_back({"uncertainty.w1", false, units, hidden});
    tensors.push_back({"uncertainty.b1", false, units, 0});
    tensors.push_back({"uncertainty.w2", false, units, 0});
    tensors.push_back({"uncertainty.b2", false, 1, 0});
  }
  return tensors;
}

Result<DraftManifest> parse_draft_manifest(std::string_view text, const std::string& where) {
  const Result<nlohmann::json> root = parse_json(text, where);
  if (!root.ok()) return root.status();
  if (!root.value().is_object()) {
    return Status(Code::kCorrupt, where + ": expected an object at the top");
  }
  DraftManifest manifest;
  SAPWOOD_TRY(read_draft_manifest(JsonObject(root.value(), where), where, &manifest));
  return manifest;
}

}  // namespace sapwood
