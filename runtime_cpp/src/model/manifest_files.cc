// Versions and the list of files: what the manifests of bundles and drafts have in common.
#include <algorithm>
#include <set>
#include <utility>

#include "model/manifest_parts.h"

namespace sapwood {
namespace {

// Only names of files in the own folder: nothing outside it is ever opened.
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

}  // namespace

Status check_version(const JsonObject& root, const std::string& where) {
  int version = 0;
  SAPWOOD_TRY(root.read("schema_version", 1, 1 << 30, &version));
  if (version <= kBundleSchema) return Status::okay();
  return Status(Code::kUnsupported, where + ": made by a newer Sapwood (bundle schema " +
                                        std::to_string(version) + ", this one reads up to " +
                                        std::to_string(kBundleSchema) + "): update Sapwood");
}

Status read_digest(const JsonObject& object, std::string_view key, Sha256Digest* out) {
  std::string text;
  SAPWOOD_TRY(object.read(key, &text));
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  const bool valid = text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  if (!valid) return object.error(key, "expected 64 lower-case hexadecimal digits");
  for (size_t i = 0; i < out->size(); ++i) {
    (*out)[i] = static_cast<uint8_t>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  }
  return Status::okay();
}

Status read_files(const JsonObject& root, std::vector<FileEntry>* files) {
  std::vector<JsonObject> entries;
  std::set<std::string, std::less<>> names = {"manifest.json"};
  SAPWOOD_TRY(root.read("files", &entries));
  for (const JsonObject& entry : entries) {
    FileEntry file;
    SAPWOOD_TRY(read_file_name(entry, "name", &file.name));
    SAPWOOD_TRY(entry.read("bytes", 0, kMaxFileBytes, &file.bytes));
    SAPWOOD_TRY(read_digest(entry, "sha256", &file.sha256));
    if (!names.insert(file.name).second) {
      return entry.error(
          "name", printable(file.name) +
                      (file.name == "manifest.json" ? " cannot list itself" : " is listed twice"));
    }
    files->push_back(std::move(file));
  }
  return Status::okay();
}

// A file that the manifest speaks of has its size and checksum in `files`.
Status read_listed_file(const JsonObject& object, std::string_view key,
                        std::span<const FileEntry> files, std::string* out) {
  SAPWOOD_TRY(read_file_name(object, key, out));
  if (find_file(files, *out) != nullptr) return Status::okay();
  return object.error(key, printable(*out) + " is not in the manifest's list of files");
}

const FileEntry* find_file(std::span<const FileEntry> files, std::string_view name) {
  for (const FileEntry& entry : files) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace sapwood
