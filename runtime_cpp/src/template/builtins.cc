#include "template/builtins.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "template/methods.h"
#include "text/utf8.h"

namespace sapwood::chat {
namespace {

constexpr int64_t kLongestRange = 100'000;

int64_t length_of(const Value& value) {
  if (value.is_string()) return static_cast<int64_t>(utf8_decode(value.string()).size());
  return static_cast<int64_t>(elements(value).size());
}

Value to_integer(const Value& input, const Arguments& arguments) {
  if (input.is_number()) return static_cast<int64_t>(std::trunc(input.number()));
  if (input.is_string()) {
    const std::string text = strip(input.string(), nullptr, true, true);
    char* end = nullptr;
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (!text.empty() && *end == '\0') return static_cast<int64_t>(number);
    const double real = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0') return static_cast<int64_t>(std::trunc(real));
  }
  const Value* otherwise = arguments.find(0, "default");
  return otherwise != nullptr ? *otherwise : Value(int64_t{0});
}

Value filter_default(const Value& input, const Arguments& arguments) {
  const Value* value = arguments.find(0, "default_value");
  const Value* by_truth = arguments.find(1, "boolean");
  const bool missing =
      input.is_undefined() || (by_truth != nullptr && by_truth->truth() && !input.truth());
  if (!missing) return input;
  return value != nullptr ? *value : Value("");
}

Value filter_tojson(const Value& input, const Arguments& arguments) {
  const Value* indent = arguments.find(1, "indent");
  for (const auto& [name, value] : arguments.named) {
    if (name != "indent" && !(name == "ensure_ascii" && !value.truth())) {
      throw TemplateError{"tojson with " + name + " is not known here"};
    }
  }
  return to_json(
      input, indent != nullptr && !indent->is_none() ? static_cast<int>(indent->integer()) : -1);
}

Value filter_join(const Value& input, const Arguments& arguments) {
  const Value* between = arguments.find(0, "d");
  std::string joined;
  bool first = true;
  for (const Value& part : elements(input)) {
    if (!first && between != nullptr) joined += to_text(*between);
    first = false;
    joined += to_text(part);
  }
  return joined;
}

Value pick(const Value& input, bool last) {
  const List all = elements(input);
  if (all.empty()) return Value::undefined("an element of an empty sequence");
  return last ? all.back() : all.front();
}

Value filter_reverse(const Value& input, const Arguments&) {
  List all = elements(input);
  std::reverse(all.begin(), all.end());
  if (!input.is_string()) return all;
  std::string text;
  for (const Value& part : all) text += part.string();
  return text;
}

Value filter_items(const Value& input, const Arguments&) {
  if (input.is_undefined()) return List();
  if (!input.is_dictionary())
    throw TemplateError{"items of a value of the type " + input.type_name()};
  return call_method(input, "items", {});
}

// map(attribute="name") and map("filter").
Value filter_map(const Value& input, const Arguments& arguments) {
  List mapped;
  const Value* name = arguments.find(arguments.positional.size(), "attribute");
  Arguments rest = arguments;
  Filter filter = nullptr;
  if (name == nullptr) {
    if (rest.positional.empty()) throw TemplateError{"map needs a filter or an attribute"};
    filter = find_filter(rest.positional[0].string());
    if (filter == nullptr) {
      throw TemplateError{"no filter named '" + rest.positional[0].string() + "'"};
    }
    rest.positional.erase(rest.positional.begin());
  }
  for (const Value& part : elements(input)) {
    mapped.push_back(filter != nullptr ? filter(part, rest) : item(part, *name));
  }
  return mapped;
}

// selectattr("name"), selectattr("name", "equalto", value) and rejectattr.
Value select_by_attribute(const Value& input, const Arguments& arguments, bool wanted) {
  if (arguments.positional.empty()) throw TemplateError{"selectattr needs an attribute"};
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > 1) {
    test = find_test(arguments.positional[1].string());
    if (test == nullptr) {
      throw TemplateError{"no test named '" + arguments.positional[1].string() + "'"};
    }
    rest.positional.assign(arguments.positional.begin() + 2, arguments.positional.end());
  }
  List selected;
  for (const Value& part : elements(input)) {
    const Value value = item(part, arguments.positional[0]);
    if ((test != nullptr ? test(value, rest) : value.truth()) == wanted) selected.push_back(part);
  }
  return selected;
}

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

Value first_argument(const Arguments& arguments) {
  if (arguments.positional.empty()) throw TemplateError{"the test needs an argument"};
  return arguments.positional[0];
}

struct NamedTest {
  std::string_view name;
  Test test;
};

}  // namespace

Filter find_filter(std::string_view name) {
  static constexpr auto kFilters = std::to_array<NamedFilter>({
      {"trim",
       [](const Value& v, const Arguments& a) { return call_method(to_text(v), "strip", a); }},
      {"length", [](const Value& v, const Arguments&) { return Value(length_of(v)); }},
      {"count", [](const Value& v, const Arguments&) { return Value(length_of(v)); }},
      {"string", [](const Value& v, const Arguments&) { return Value(to_text(v)); }},
      {"safe", [](const Value& v, const Arguments&) { return Value(to_text(v)); }},
      {"int", to_integer},
      {"default", filter_default},
      {"d", filter_default},
      {"tojson", filter_tojson},
      {"join", filter_join},
      {"first", [](const Value& v, const Arguments&) { return pick(v, false); }},
      {"last", [](const Value& v, const Arguments&) { return pick(v, true); }},
      {"list", [](const Value& v, const Arguments&) { return Value(elements(v)); }},
      {"reverse", filter_reverse},
      {"items", filter_items},
      {"map", filter_map},
      {"selectattr",
       [](const Value& v, const Arguments& a) { return select_by_attribute(v, a, true); }},
      {"rejectattr",
       [](const Value& v, const Arguments& a) { return select_by_attribute(v, a, false); }},
      {"replace",
       [](const Value& v, const Arguments& a) { return call_method(to_text(v), "replace", a); }},
      {"upper",
       [](const Value& v, const Arguments& a) { return call_method(to_text(v), "upper", a); }},
      {"lower",
       [](const Value& v, const Arguments& a) { return call_method(to_text(v), "lower", a); }},
      {"capitalize",
       [](const Value& v, const Arguments& a) { return call_method(to_text(v), "capitalize", a); }},
  });
  for (const NamedFilter& known : kFilters) {
    if (known.name == name) return known.filter;
  }
  return nullptr;
}

Test find_test(std::string_view name) {
  using V = Value;
  using A = Arguments;
  static constexpr auto kTests = std::to_array<NamedTest>({
      {"defined", [](const V& v, const A&) { return !v.is_undefined(); }},
      {"undefined", [](const V& v, const A&) { return v.is_undefined(); }},
      {"none", [](const V& v, const A&) { return v.is_none(); }},
      {"string", [](const V& v, const A&) { return v.is_string(); }},
      {"mapping", [](const V& v, const A&) { return v.is_dictionary(); }},
      {"number", [](const V& v, const A&) { return v.is_number(); }},
      {"integer", [](const V& v, const A&) { return v.is_integer(); }},
      {"float", [](const V& v, const A&) { return v.is_float(); }},
      {"boolean", [](const V& v, const A&) { return v.is_bool(); }},
      {"true", [](const V& v, const A&) { return v.is_bool() && v.truth(); }},
      {"false", [](const V& v, const A&) { return v.is_bool() && !v.truth(); }},
      {"iterable",
       [](const V& v, const A&) {
         return v.is_string() || v.is_list() || v.is_dictionary() || v.is_undefined();
       }},
      {"sequence",
       [](const V& v, const A&) {
         return v.is_string() || v.is_list() || v.is_dictionary() || v.is_undefined();
       }},
      {"callable", [](const V& v, const A&) { return v.is_function(); }},
      {"odd", [](const V& v, const A&) { return v.is_number() && v.integer() % 2 != 0; }},
      {"even", [](const V& v, const A&) { return v.is_number() && v.integer() % 2 == 0; }},
      {"equalto", [](const V& v, const A& a) { return equal(v, first_argument(a)); }},
      {"eq", [](const V& v, const A& a) { return equal(v, first_argument(a)); }},
      {"==", [](const V& v, const A& a) { return equal(v, first_argument(a)); }},
      {"ne", [](const V& v, const A& a) { return !equal(v, first_argument(a)); }},
      {"in", [](const V& v, const A& a) { return contains(first_argument(a), v); }},
  });
  for (const NamedTest& known : kTests) {
    if (known.name == name) return known.test;
  }
  return nullptr;
}

Value attribute(const Value& value, const std::string& name) {
  if (value.is_undefined()) throw TemplateError{"'" + value.undefined_name() + "' is undefined"};
  if (has_method(value, name)) {
    return Function(
        [value, name](const Arguments& arguments) { return call_method(value, name, arguments); });
  }
  if (value.is_dictionary()) {
    if (const Value* found = value.find(name); found != nullptr) return *found;
  }
  return Value::undefined(value.type_name() + " object's attribute " + name);
}

Value item(const Value& value, const Value& index) {
  if (value.is_undefined()) throw TemplateError{"'" + value.undefined_name() + "' is undefined"};
  if (value.is_dictionary() && index.is_string()) {
    const Value* found = value.find(index.string());
    return found != nullptr ? *found : attribute(value, index.string());
  }
  if ((value.is_list() || value.is_string()) && (index.is_integer() || index.is_bool())) {
    const List all = elements(value);
    int64_t at = index.integer();
    if (at < 0) at += static_cast<int64_t>(all.size());
    if (at >= 0 && at < static_cast<int64_t>(all.size())) return all[static_cast<size_t>(at)];
  }
  return Value::undefined("an element of a value of the type " + value.type_name());
}

// The rules of Python's slice.indices().
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step) {
  if (!value.is_list() && !value.is_string()) {
    throw TemplateError{"a value of the type " + value.type_name() + " has no slices"};
  }
  const List all = elements(value);
  const auto given = [](const Value& part) { return !part.is_undefined() && !part.is_none(); };
  const int64_t size = static_cast<int64_t>(all.size());
  const int64_t stride = given(step) ? step.integer() : 1;
  if (stride == 0) throw TemplateError{"a slice's step is 0"};
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  const auto place = [&](const Value& part, int64_t otherwise) {
    if (!given(part)) return otherwise;
    const int64_t at = part.integer() < 0 ? part.integer() + size : part.integer();
    return std::clamp(at, low, high);
  };
  const int64_t first = place(begin, stride > 0 ? low : high);
  const int64_t last = place(end, stride > 0 ? high : low);
  List kept;
  for (int64_t i = first; stride > 0 ? i < last : i > last; i += stride) {
    kept.push_back(all[static_cast<size_t>(i)]);
  }
  if (value.is_list()) return kept;
  std::string text;
  for (const Value& part : kept) text += part.string();
  return text;
}

Dictionary global_functions() {
  Dictionary functions;
  functions.emplace_back(
      "range", Function([](const Arguments& arguments) -> Value {
        const List& given = arguments.positional;
        if (given.empty() || given.size() > 3) {
          throw TemplateError{"range takes one to three numbers"};
        }
        const int64_t begin = given.size() > 1 ? given[0].integer() : 0;
        const int64_t end = given[given.size() > 1 ? 1 : 0].integer();
        const int64_t step = given.size() > 2 ? given[2].integer() : 1;
        if (step == 0 || std::abs(end - begin) / std::abs(step) > kLongestRange) {
          throw TemplateError{"range has a step of 0 or too many numbers"};
        }
        List numbers;
        for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
          numbers.emplace_back(i);
        }
        return numbers;
      }));
  functions.emplace_back("namespace", Function([](const Arguments& arguments) -> Value {
                           return Dictionary(arguments.named);
                         }));
  functions.emplace_back("raise_exception", Function([](const Arguments& arguments) -> Value {
                           throw TemplateError{to_text(first_argument(arguments))};
                         }));
  functions.emplace_back("strftime_now", Function([](const Arguments& arguments) -> Value {
                           const std::time_t now = std::time(nullptr);
                           std::tm local = {};
                           localtime_r(&now, &local);
                           char text[256];
                           const std::string pattern = to_text(first_argument(arguments));
                           return std::string(
                               text, std::strftime(text, sizeof(text), pattern.c_str(), &local));
                         }));
  return functions;
}

}  // namespace sapwood::chat
