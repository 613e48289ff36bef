#include "template/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/utf8.h"

namespace sapwood::chat {
namespace {

// The shortest digits that read back as the same number, as Python's repr() writes them.
std::string float_text(double value) {
  if (!std::isfinite(value)) {
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  }
  char digits[40];
  for (int precision = 1; precision <= 17; ++precision) {
    std::snprintf(digits, sizeof(digits), "%.*e", precision - 1, value);
    if (std::strtod(digits, nullptr) == value) break;
  }
  const std::string_view scientific = digits;
  const size_t at = scientific.find('e');
  const int exponent = std::atoi(digits + at + 1);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  const int significant = static_cast<int>(
      std::count_if(digits, digits + at, [](char c) { return c >= '0' && c <= '9'; }));
  std::snprintf(digits, sizeof(digits), "%.*f", std::max(1, significant - 1 - exponent), value);
  return digits;
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_json(const Value& value, int indent, int depth, std::string* out) {
  const auto new_line = [&](int levels) {
    if (indent < 0) return;
    *out += '\n';
    out->append(static_cast<size_t>(indent) * static_cast<size_t>(levels), ' ');
  };
  const char* between = indent < 0 ? ", " : ",";
  if (value.is_none()) {
    *out += "null";
  } else if (value.is_bool()) {
    *out += value.truth() ? "true" : "false";
  } else if (value.is_number()) {
    *out += to_text(value);
  } else if (value.is_string()) {
    *out += quoted(value.string());
  } else if (value.is_list()) {
    *out += '[';
    bool first = true;
    for (const Value& item : value.list()) {
      if (!first) *out += between;
      first = false;
      new_line(depth + 1);
      append_json(item, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    *out += ']';
  } else if (value.is_dictionary()) {
    *out += '{';
    bool first = true;
    for (const auto& [key, item] : value.dictionary()) {
      if (!first) *out += between;
      first = false;
      new_line(depth + 1);
      *out += quoted(key) + ": ";
      append_json(item, indent, depth + 1, out);
    }
    if (!first) new_line(depth);
    *out += '}';
  } else {
    throw TemplateError{"a value of the type " + value.type_name() + " cannot be written as JSON"};
  }
}

}  // namespace

Value Value::of(const nlohmann::ordered_json& json) {
  if (json.is_null()) return nullptr;
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List list;
    for (const auto& item : json) list.push_back(of(item));
    return list;
  }
  Dictionary dictionary;
  for (const auto& [key, item] : json.items()) dictionary.emplace_back(key, of(item));
  return dictionary;
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (is_number()) return number() != 0;
  if (is_string()) return !string().empty();
  if (is_list()) return !list().empty();
  if (is_dictionary()) return !dictionary().empty();
  return true;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : dictionary()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (is_bool()) return "bool";
  if (is_integer()) return "int";
  if (is_float()) return "float";
  if (is_string()) return "str";
  if (is_list()) return "list";
  return is_dictionary() ? "dict" : "function";
}

const Value* Arguments::find(size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  for (const auto& [its_name, value] : named) {
    if (its_name == name) return &value;
  }
  return nullptr;
}

bool equal(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return left.number() == right.number();
  if (left.is_string() && right.is_string()) return left.string() == right.string();
  if (left.is_list() && right.is_list()) {
    return std::equal(left.list().begin(), left.list().end(), right.list().begin(),
                      right.list().end(), equal);
  }
  if (left.is_dictionary() && right.is_dictionary()) {
    if (left.dictionary().size() != right.dictionary().size()) return false;
    return std::all_of(left.dictionary().begin(), left.dictionary().end(), [&](const auto& entry) {
      const Value* other = right.find(entry.first);
      return other != nullptr && equal(entry.second, *other);
    });
  }
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

int compare(const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    return left.number() < right.number() ? -1 : left.number() > right.number() ? 1 : 0;
  }
  if (left.is_string() && right.is_string()) return left.string().compare(right.string());
  throw TemplateError{"values of the types " + left.type_name() + " and " + right.type_name() +
                      " have no order"};
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string() && item.is_string()) {
    return container.string().find(item.string()) != std::string::npos;
  }
  if (container.is_dictionary()) {
    return item.is_string() && container.find(item.string()) != nullptr;
  }
  if (container.is_list()) {
    return std::any_of(container.list().begin(), container.list().end(),
                       [&](const Value& value) { return equal(value, item); });
  }
  if (container.is_undefined()) return false;
  throw TemplateError{"a value of the type " + container.type_name() + " contains nothing"};
}

std::string to_text(const Value& value) {
  if (value.is_string()) return value.string();
  if (value.is_undefined()) return {};
  if (value.is_none()) return "None";
  if (value.is_bool()) return value.truth() ? "True" : "False";
  if (value.is_integer()) return std::to_string(value.integer());
  if (value.is_float()) return float_text(value.number());
  throw TemplateError{"a value of the type " + value.type_name() +
                      " has no text here; the template may write it with tojson"};
}

std::string to_json(const Value& value, int indent) {
  std::string text;
  append_json(value, indent, 0, &text);
  return text;
}

List elements(const Value& value) {
  if (value.is_list()) return value.list();
  List found;
  if (value.is_dictionary()) {
    for (const auto& [key, item] : value.dictionary()) found.emplace_back(key);
  } else if (value.is_string()) {
    for (const char32_t character : utf8_decode(value.string())) {
      found.emplace_back(utf8_encode(std::u32string_view(&character, 1)));
    }
  } else if (!value.is_undefined()) {
    throw TemplateError{"a value of the type " + value.type_name() + " has no elements"};
  }
  return found;
}

}  // namespace sapwood::chat
