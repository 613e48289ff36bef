#include "base/json.h"

#include <algorithm>
#include <cstdio>

namespace sapwood {
namespace {

using nlohmann::json;

constexpr size_t kShown = 60;  // characters of a value or a name that a message repeats

// Accepts everything and remembers where the parser stopped.
class FindError : public nlohmann::json_sax<json> {
 public:
  size_t position() const { return position_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    position_ = position;
    return false;
  }

 private:
  size_t position_ = 0;
};

std::string place_of_error(std::string_view text) {
  FindError finder;
  json::sax_parse(text.begin(), text.end(), &finder);
  const size_t end = std::min(finder.position(), text.size());
  const std::string_view before = text.substr(0, end == 0 ? 0 : end - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = before.size() - (newline == std::string_view::npos ? 0 : newline + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  if (value.is_string()) return printable(value.get_ref<const std::string&>());
  return value.dump();
}

bool integer_between(const json& value, int64_t low, int64_t high, int64_t* out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) return false;
  *out = value.get<int64_t>();
  return *out >= low && *out <= high;
}

std::string range(int64_t low, int64_t high) {
  return " from " + std::to_string(low) + " to " + std::to_string(high);
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& file) {
  json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) {
    return Status(Code::kCorrupt, file + ": is not valid JSON (" + place_of_error(text) + ")");
  }
  return root;
}

std::string printable(std::string_view text) {
  const bool cut = text.size() > kShown;
  const json value(std::string(text.substr(0, kShown)));
  std::string out = value.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (cut) out.insert(out.size() - 1, "...");
  return out;
}

JsonObject::JsonObject() {
  static const json empty = json::object();
  value_ = &empty;
}

bool JsonObject::has(std::string_view key) const {
  const auto field = value_->find(key);
  return field != value_->end() && !field->is_null();
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, unused] : value_->items()) names.push_back(name);
  return names;
}

std::string JsonObject::path_of(std::string_view key) const {
  // Keys may come from the file too (tensor names): plain ones are shown as they are.
  const bool plain = key.size() <= kShown && std::all_of(key.begin(), key.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
                     });
  const std::string name = plain ? std::string(key) : printable(key);
  return path_.empty() ? name : path_ + "." + name;
}

Status JsonObject::error(std::string_view key, const std::string& what, Code code) const {
  return Status(code, file_ + ": " + path_of(key) + ": " + what);
}

Status JsonObject::error(const Status& rule) const {
  const std::string prefix = path_.empty() ? "" : path_ + ".";
  return Status(rule.code(), file_ + ": " + prefix + rule.message());
}

Status JsonObject::wrong(std::string_view key, const std::string& expected,
                         const json& found) const {
  return error(key, "expected " + expected + ", found " + shown(found));
}

const json* JsonObject::find(std::string_view key, Status* status) const {
  const auto field = value_->find(key);
  if (field == value_->end()) {
    *status = Status(Code::kCorrupt, file_ + ": " + path_of(key) + " is missing");
    return nullptr;
  }
  return &*field;
}

Status JsonObject::read_integer(std::string_view key, int64_t low, int64_t high,
                                int64_t* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (integer_between(*field, low, high, out)) return Status::okay();
  return wrong(key, "an integer" + range(low, high), *field);
}

Status JsonObject::read(std::string_view key, double low, double high, float* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  // Written so that a NaN fails.
  if (!field->is_number() || !(field->get<double>() >= low && field->get<double>() <= high)) {
    return wrong(key, "a number from " + number(low) + " to " + number(high), *field);
  }
  *out = static_cast<float>(field->get<double>());
  return Status::okay();
}

Status JsonObject::read(std::string_view key, bool* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_boolean()) return wrong(key, "true or false", *field);
  *out = field->get<bool>();
  return Status::okay();
}

Status JsonObject::read(std::string_view key, std::string* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_string()) return wrong(key, "a string", *field);
  *out = field->get<std::string>();
  return Status::okay();
}

Status JsonObject::read(std::string_view key, JsonObject* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_object()) return wrong(key, "an object", *field);
  *out = JsonObject(*field, file_, path_of(key));
  return Status::okay();
}

Status JsonObject::read(std::string_view key, std::vector<bool>* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_array()) return wrong(key, "a list of true and false", *field);
  out->clear();
  for (const json& entry : *field) {
    if (!entry.is_boolean()) return wrong(key, "only true and false in the list", entry);
    out->push_back(entry.get<bool>());
  }
  return Status::okay();
}

Status JsonObject::read(std::string_view key, int low, int high, std::vector<int>* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_array()) return wrong(key, "a list of integers", *field);
  out->clear();
  for (const json& entry : *field) {
    int64_t value = 0;
    if (!integer_between(entry, low, high, &value)) {
      return wrong(key, "only integers" + range(low, high) + " in the list", entry);
    }
    out->push_back(static_cast<int>(value));
  }
  return Status::okay();
}

Status JsonObject::read(std::string_view key, std::vector<JsonObject>* out) const {
  Status missing;
  const json* field = find(key, &missing);
  if (field == nullptr) return missing;
  if (!field->is_array()) return wrong(key, "a list of objects", *field);
  out->clear();
  for (const json& entry : *field) {
    if (!entry.is_object()) return wrong(key, "only objects in the list", entry);
    out->emplace_back(entry, file_, path_of(key) + "[" + std::to_string(out->size()) + "]");
  }
  return Status::okay();
}

}  // namespace sapwood
