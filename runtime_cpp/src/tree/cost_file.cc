#include "tree/cost_file.h"

#include "base/file_map.h"
#include "base/json.h"

namespace sapwood {
namespace {

constexpr int kSchemaVersion = 1;  // python_bindings/sapwood/cost_cache.py
constexpr uint64_t kLargestFile = 1 << 20;
constexpr int kMost = 1 << 24;  // tokens, rows, threads

// A list of lists of numbers; how many there must be is CostGrid's to check.
Status read_milliseconds(const nlohmann::json& root, const JsonObject& file,
                         std::vector<double>& milliseconds) {
  const std::string what = "expected a list of lists of numbers";
  const auto found = root.find("milliseconds");
  if (found == root.end() || !found->is_array()) return file.error("milliseconds", what);
  for (const nlohmann::json& line : *found) {
    if (!line.is_array()) return file.error("milliseconds", what);
    for (const nlohmann::json& value : line) {
      if (!value.is_number()) return file.error("milliseconds", what);
      milliseconds.push_back(value.get<double>());
    }
  }
  return Status::okay();
}

}  // namespace

Result<CostFile> read_cost_file(const std::string& path) {
  const Result<std::string> text = read_file(path, kLargestFile);
  if (!text.ok()) return text.status();
  const Result<nlohmann::json> root = parse_json(text.value(), path);
  if (!root.ok()) return root.status();
  if (!root.value().is_object()) {
    return Status(Code::kCorrupt, path + ": not an object; give a file that `sapwood tune` wrote");
  }
  const JsonObject file(root.value(), path);
  CostFile costs;
  int version = 0;
  JsonObject key;
  SAPWOOD_TRY(file.read("schema_version", kSchemaVersion, kSchemaVersion, &version));
  SAPWOOD_TRY(file.read("key", &key));
  SAPWOOD_TRY(key.read("weights_sha256", &costs.weights_sha256));
  SAPWOOD_TRY(key.read("host", &costs.host));
  SAPWOOD_TRY(key.read("kernels", &costs.kernels));
  SAPWOOD_TRY(key.read("kv", &costs.kv));
  SAPWOOD_TRY(key.read("threads", 1, kMost, &costs.threads));
  SAPWOOD_TRY(file.read("contexts", 0, kMost, &costs.grid.contexts));
  SAPWOOD_TRY(file.read("rows", 1, kMost, &costs.grid.rows));
  SAPWOOD_TRY(read_milliseconds(root.value(), file, costs.grid.milliseconds));
  if (const Status checked = costs.grid.check(); !checked.ok()) {
    return Status(Code::kCorrupt, path + ": " + checked.message());
  }
  return costs;
}

}  // namespace sapwood
