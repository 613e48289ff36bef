// The values of a chat template: what Python's are, as far as templates of chat models need them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sapwood::chat {

// Thrown while a template is parsed or rendered, caught by ChatTemplate: a message and the line of
// the template. Expressions nest, so carrying a Status through each would double the code.
struct TemplateError {
  std::string message;
  int line = 0;
};

class Value;
using List = std::vector<Value>;
using Dictionary = std::vector<std::pair<std::string, Value>>;  // in the order of insertion
struct Arguments;
using Function = std::function<Value(const Arguments&)>;

struct Undefined {
  std::string name;  // what was looked for
};

// Strings are UTF-8. Lists and dictionaries are shared and never change, except for a namespace,
// which is a dictionary that `set` may write to.
class Value {
 public:
  Value() : data_(Undefined{}) {}
  Value(std::nullptr_t) : data_(nullptr) {}                // NOLINT: implicit on purpose
  Value(bool value) : data_(value) {}                      // NOLINT
  Value(int64_t value) : data_(value) {}                   // NOLINT
  Value(double value) : data_(value) {}                    // NOLINT
  Value(std::string value) : data_(std::move(value)) {}    // NOLINT
  Value(const char* value) : data_(std::string(value)) {}  // NOLINT
  Value(List value) : data_(std::make_shared<List>(std::move(value))) {}              // NOLINT
  Value(Dictionary value) : data_(std::make_shared<Dictionary>(std::move(value))) {}  // NOLINT
  Value(Function value) : data_(std::make_shared<Function>(std::move(value))) {}      // NOLINT

  static Value undefined(std::string name) {
    Value value;
    value.data_ = Undefined{std::move(name)};
    return value;
  }
  static Value of(const nlohmann::ordered_json& json);

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<std::nullptr_t>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_integer() || is_float(); }
  bool is_string() const { return std::holds_alternative<std::string>(data_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<List>>(data_); }
  bool is_dictionary() const { return std::holds_alternative<std::shared_ptr<Dictionary>>(data_); }
  bool is_function() const { return std::holds_alternative<std::shared_ptr<Function>>(data_); }

  const std::string& string() const { return std::get<std::string>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<List>>(data_); }
  const Dictionary& dictionary() const { return *std::get<std::shared_ptr<Dictionary>>(data_); }
  Dictionary& namespace_fields() const { return *std::get<std::shared_ptr<Dictionary>>(data_); }
  const Function& function() const { return *std::get<std::shared_ptr<Function>>(data_); }
  const std::string& undefined_name() const { return std::get<Undefined>(data_).name; }
  int64_t integer() const {  // of a bool or an integer
    return is_bool() ? static_cast<int64_t>(std::get<bool>(data_)) : std::get<int64_t>(data_);
  }
  double number() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(integer());
  }

  bool truth() const;
  // The entry of a dictionary; null if there is none.
  const Value* find(std::string_view key) const;
  // "str", "list", ...: as Python calls the type.
  std::string type_name() const;

 private:
  std::variant<Undefined, std::nullptr_t, bool, int64_t, double, std::string, std::shared_ptr<List>,
               std::shared_ptr<Dictionary>, std::shared_ptr<Function>>
      data_;
};

struct Arguments {
  List positional;
  Dictionary named;

  // Argument `index`, or the one of that name; null if neither is there.
  const Value* find(size_t index, std::string_view name) const;
};

bool equal(const Value& left, const Value& right);
// Less than 0, 0 or above: of two numbers or two strings.
int compare(const Value& left, const Value& right);
bool contains(const Value& container, const Value& item);

// As Python's str(): throws TemplateError for what has no text that a prompt should hold, such as a
// list.
std::string to_text(const Value& value);

// As json.dumps(value, ensure_ascii=False, indent=...) writes it; indent below 0: on one line.
std::string to_json(const Value& value, int indent);

// What a for loop goes over: a list's values, a dictionary's keys, a string's characters.
List elements(const Value& value);

}  // namespace sapwood::chat
