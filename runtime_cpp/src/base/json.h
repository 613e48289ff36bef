// Typed, checked reading of JSON made by others.
//
// A field that is missing, of the wrong type or out of range gives one line that names the file and
// the field's path, and nothing else happens. Example:
//
//   Result<nlohmann::json> root = parse_json(text, "manifest.json");
//   if (!root.ok()) return root.status();
//   JsonObject manifest(root.value(), "manifest.json");
//   int layers = 0;
//   SAPWOOD_TRY(manifest.read("layers", 1, 1024, &layers));
//   // "manifest.json: layers: expected an integer from 1 to 1024, found \"six\""
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sapwood {

// kCorrupt, with line and column, for text that is not one JSON value in UTF-8.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file);

// Text from a file as it may stand in a message: quoted, control characters escaped, shortened.
std::string printable(std::string_view text);

// A view of an object inside a document that outlives it.
class JsonObject {
 public:
  // `value` must be an object: what parse_json returned, or what read() checked.
  JsonObject(const nlohmann::json& value, std::string file, std::string path = "")
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  // An empty object, to be replaced by read().
  JsonObject();

  // False too where the field is null.
  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;

  // Integers from low to high, both included; both must fit an int64_t.
  template <std::integral Integer>
  Status read(std::string_view key, std::type_identity_t<Integer> low,
              std::type_identity_t<Integer> high, Integer* out) const {
    int64_t value = 0;
    SAPWOOD_TRY(read_integer(key, static_cast<int64_t>(low), static_cast<int64_t>(high), &value));
    *out = static_cast<Integer>(value);
    return Status::okay();
  }
  Status read(std::string_view key, double low, double high, float* out) const;
  Status read(std::string_view key, bool* out) const;
  Status read(std::string_view key, std::string* out) const;
  Status read(std::string_view key, JsonObject* out) const;
  Status read(std::string_view key, std::vector<bool>* out) const;
  Status read(std::string_view key, int low, int high, std::vector<int>* out) const;
  Status read(std::string_view key, std::vector<JsonObject>* out) const;

  // "file: path.key: what": a rule that the caller checked does not hold.
  Status error(std::string_view key, const std::string& what, Code code = Code::kCorrupt) const;

  // "file: path.message", for a rule about this object's fields that names the field itself.
  Status error(const Status& rule) const;

  // The field's whole path, "target.spec.heads".
  std::string path_of(std::string_view key) const;

 private:
  // The field, or null with the reason in `status`.
  const nlohmann::json* find(std::string_view key, Status* status) const;
  Status read_integer(std::string_view key, int64_t low, int64_t high, int64_t* out) const;
  Status wrong(std::string_view key, const std::string& expected,
               const nlohmann::json& found) const;

  const nlohmann::json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace sapwood
