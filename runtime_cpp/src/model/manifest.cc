#include "model/manifest.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/json.h"
#include "model/manifest_parts.h"

namespace sapwood {
namespace {

constexpr std::string_view kEarlyExit = "early_exit";
constexpr const char* kModes[] = {"plain", "chain", "fixed", "dynamic"};

// Only names of files in the bundle's own folder: nothing outside it is ever opened.
bool plain_file_name(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

Status read_file_name(const JsonObject& object, std::string_view key, std::string* out) {
  SAPWOOD_TRY(object.read(key, out));
  if (plain_file_name(*out)) return Status::okay();
  return object.error(key, printable(*out) + " is not the name of a file in the bundle's folder");
}

Status read_digest(const JsonObject& object, Sha256Digest* out) {
  std::string text;
  SAPWOOD_TRY(object.read("sha256", &text));
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  const bool valid = text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  if (!valid) return object.error("sha256", "expected 64 lower-case hexadecimal digits");
  for (size_t i = 0; i < out->size(); ++i) {
    (*out)[i] = static_cast<uint8_t>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  }
  return Status::okay();
}

Status check_version(const JsonObject& root, const std::string& where) {
  int version = 0;
  SAPWOOD_TRY(root.read("schema_version", 1, 1 << 30, &version));
  if (version <= kBundleSchema) return Status::okay();
  return Status(Code::kUnsupported, where + ": made by a newer Sapwood (bundle schema " +
                                        std::to_string(version) + ", this one reads up to " +
                                        std::to_string(kBundleSchema) + "): update Sapwood");
}

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

Status read_files(const JsonObject& root, Manifest* manifest) {
  std::vector<JsonObject> entries;
  std::set<std::string, std::less<>> names = {"manifest.json"};
  SAPWOOD_TRY(root.read("files", &entries));
  for (const JsonObject& entry : entries) {
    FileEntry file;
    SAPWOOD_TRY(read_file_name(entry, "name", &file.name));
    SAPWOOD_TRY(entry.read("bytes", 0, kMaxFileBytes, &file.bytes));
    SAPWOOD_TRY(read_digest(entry, &file.sha256));
    if (!names.insert(file.name).second) {
      return entry.error(
          "name", printable(file.name) +
                      (file.name == "manifest.json" ? " cannot list itself" : " is listed twice"));
    }
    manifest->files.push_back(std::move(file));
  }
  return Status::okay();
}

Status read_tokenizer(const JsonObject& root, Manifest* manifest) {
  TokenizerInfo& info = manifest->tokenizer;
  const int last_token = manifest->spec.vocabulary_size - 1;
  JsonObject object;
  SAPWOOD_TRY(root.read("tokenizer", &object));
  SAPWOOD_TRY(read_listed_file(object, "file", *manifest, &info.file));
  if (object.has("chat_template")) {
    SAPWOOD_TRY(read_listed_file(object, "chat_template", *manifest, &info.chat_template));
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
      SAPWOOD_TRY(read_listed_file(entry, "file", *manifest, &drafter.file));
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
  SAPWOOD_TRY(read_files(root, manifest));
  SAPWOOD_TRY(read_target(root, manifest));
  SAPWOOD_TRY(read_tokenizer(root, manifest));
  SAPWOOD_TRY(read_drafters(root, manifest));
  return read_defaults(root, manifest);
}

}  // namespace

// A file that the manifest speaks of has its size and checksum in `files`.
Status read_listed_file(const JsonObject& object, std::string_view key, const Manifest& manifest,
                        std::string* out) {
  SAPWOOD_TRY(read_file_name(object, key, out));
  if (manifest.file(*out) != nullptr) return Status::okay();
  return object.error(key, printable(*out) + " is not in the manifest's list of files");
}

int Manifest::early_exit_layers() const {
  for (const DrafterEntry& drafter : drafters) {
    if (drafter.kind == kEarlyExit) return drafter.layers;
  }
  return 0;
}

const FileEntry* Manifest::file(std::string_view file_name) const {
  for (const FileEntry& entry : files) {
    if (entry.name == file_name) return &entry;
  }
  return nullptr;
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
