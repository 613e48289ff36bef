#include "model/manifest.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/json.h"
#include "model/manifest_parts.h"

namespace sapwood {
namespace {

constexpr std::string_view kEarlyExit = "early_exit";
constexpr const char* kModes[] = {"plain", "chain", "fixed", "dynamic"};

// What the bundle's numbers assume of the operators must be what this build computes.
Status check_numerics(const JsonObject& root) {
  JsonObject operators, numerics;
  std::string domain, kv;
  int version = 0, bits = 0, group = 0;
  bool row_invariant = false;
  SAPWOOD_TRY(root.read("operators", &operators));
  SAPWOOD_TRY(operators.read("domain", &domain));
  SAPWOOD_TRY(operators.read("version", 1, 1 << 30, &version));
  SAPWOOD_TRY(root.read("numerics", &numerics));
  SAPWOOD_TRY(numerics.read("row_invariant", &row_invariant));
  SAPWOOD_TRY(numerics.read("activation_bits", 1, 32, &bits));
  SAPWOOD_TRY(numerics.read("activation_group", 1, 1 << 30, &group));
  SAPWOOD_TRY(numerics.read("kv", &kv));
  const auto unsupported = [](const JsonObject& object, std::string_view key,
                              const std::string& found) {
    return object.error(key, found + " is not supported by this build: update Sapwood",
                        Code::kUnsupported);
  };
  if (domain != "com.endpoint.ai") return unsupported(operators, "domain", printable(domain));
  if (version > kOperatorVersion) {
    return unsupported(operators, "version", std::to_string(version));
  }
  if (!row_invariant) return unsupported(numerics, "row_invariant", "false");
  if (bits != 8) return unsupported(numerics, "activation_bits", std::to_string(bits));
  if (group != kActivationGroup) {
    return unsupported(numerics, "activation_group", std::to_string(group));
  }
  if (kv != "float16") return unsupported(numerics, "kv", printable(kv));
  return Status::okay();
}

Status read_tokenizer(const JsonObject& root, Manifest* manifest) {
  TokenizerInfo& info = manifest->tokenizer;
  const int last_token = manifest->spec.vocabulary_size - 1;
  JsonObject object;
  SAPWOOD_TRY(root.read("tokenizer", &object));
  SAPWOOD_TRY(read_listed_file(object, "file", manifest->files, &info.file));
  if (object.has("chat_template")) {
    SAPWOOD_TRY(read_listed_file(object, "chat_template", manifest->files, &info.chat_template));
  }
  if (object.has("bos_token_id")) {
    int bos = 0;
    SAPWOOD_TRY(object.read("bos_token_id", 0, last_token, &bos));
    info.bos_token_id = bos;
  }
  return object.read("eos_token_ids", 0, last_token, &info.eos_token_ids);
}

Status read_drafters(const JsonObject& root, Manifest* manifest) {
  std::vector<JsonObject> entries;
  SAPWOOD_TRY(root.read("drafters", &entries));
  for (const JsonObject& entry : entries) {
    DrafterEntry drafter;
    SAPWOOD_TRY(entry.read("kind", &drafter.kind));
    if (drafter.kind == kEarlyExit) {
      if (manifest->early_exit_layers() != 0) {
        return entry.error("kind", "there is more than one early exit");
      }
      SAPWOOD_TRY(entry.read("layers", 1, manifest->spec.layers - 1, &drafter.layers));
    }
    if (entry.has("file")) {
      SAPWOOD_TRY(read_listed_file(entry, "file", manifest->files, &drafter.file));
    }
    manifest->drafters.push_back(std::move(drafter));
  }
  return Status::okay();
}

Status read_defaults(const JsonObject& root, Manifest* manifest) {
  JsonObject defaults;
  SAPWOOD_TRY(root.read("defaults", &defaults));
  SAPWOOD_TRY(defaults.read("mode", &manifest->default_mode));
  if (std::find(std::begin(kModes), std::end(kModes), manifest->default_mode) == std::end(kModes)) {
    return defaults.error(
        "mode", printable(manifest->default_mode) + " is not one of plain, chain, fixed, dynamic");
  }
  int context = 0;
  SAPWOOD_TRY(defaults.read("context_length", 1, kMaxPositions, &context));
  manifest->default_context_length = std::min(context, manifest->spec.context_length);
  return Status::okay();
}

Status read_manifest(const JsonObject& root, const std::string& where, Manifest* manifest) {
  SAPWOOD_TRY(check_version(root, where));
  SAPWOOD_TRY(root.read("name", &manifest->name));
  SAPWOOD_TRY(root.read("sapwood_version", &manifest->sapwood_version));
  SAPWOOD_TRY(check_numerics(root));
  SAPWOOD_TRY(read_files(root, &manifest->files));
  SAPWOOD_TRY(read_target(root, manifest));
  SAPWOOD_TRY(read_tokenizer(root, manifest));
  SAPWOOD_TRY(read_drafters(root, manifest));
  return read_defaults(root, manifest);
}

}  // namespace

int Manifest::early_exit_layers() const {
  for (const DrafterEntry& drafter : drafters) {
    if (drafter.kind == kEarlyExit) return drafter.layers;
  }
  return 0;
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& where) {
  const Result<nlohmann::json> root = parse_json(text, where);
  if (!root.ok()) return root.status();
  if (!root.value().is_object()) {
    return Status(Code::kCorrupt, where + ": expected an object at the top");
  }
  Manifest manifest;
  SAPWOOD_TRY(read_manifest(JsonObject(root.value(), where), where, &manifest));
  return manifest;
}

}  // namespace sapwood
