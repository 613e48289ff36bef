#include "template/methods.h"

#include <algorithm>
#include <array>
#include <utility>

#include "text/unicode.h"
#include "text/utf8.h"

namespace sapwood::chat {
namespace {

// As str.isspace(): the separators of files and records too.
bool is_python_space(char32_t character) {
  return is_space(character) || (character >= 0x1c && character <= 0x1f);
}

const std::string& text_argument(const Arguments& arguments, size_t index, const char* method) {
  if (index >= arguments.positional.size() || !arguments.positional[index].is_string()) {
    throw TemplateError{std::string(method) + " needs a string"};
  }
  return arguments.positional[index].string();
}

int64_t count_argument(const Arguments& arguments, size_t index, std::string_view name) {
  const Value* count = arguments.find(index, name);
  return count == nullptr || count->is_none() ? -1 : count->integer();
}

// split() at runs of white space, or at a separator.
Value split(const std::string& text, const Arguments& arguments) {
  List parts;
  int64_t left = count_argument(arguments, 1, "maxsplit");
  const Value* separator = arguments.find(0, "sep");
  if (separator != nullptr && separator->is_string()) {
    const std::string& by = separator->string();
    if (by.empty()) throw TemplateError{"split by an empty string"};
    size_t begin = 0;
    for (size_t end; left != 0 && (end = text.find(by, begin)) != std::string::npos; --left) {
      parts.emplace_back(text.substr(begin, end - begin));
      begin = end + by.size();
    }
    parts.emplace_back(text.substr(begin));
    return parts;
  }
  if (left >= 0) throw TemplateError{"split at white space with a limit is not known here"};
  std::u32string word;
  for (const char32_t character : utf8_decode(text)) {
    if (!is_python_space(character)) {
      word.push_back(character);
    } else if (!word.empty()) {
      parts.emplace_back(utf8_encode(std::exchange(word, {})));
    }
  }
  if (!word.empty()) parts.emplace_back(utf8_encode(word));
  return parts;
}

Value replace(const std::string& text, const Arguments& arguments) {
  const std::string& from = text_argument(arguments, 0, "replace");
  const std::string& to = text_argument(arguments, 1, "replace");
  int64_t left = count_argument(arguments, 2, "count");
  if (from.empty()) throw TemplateError{"replace of an empty string is not known here"};
  std::string replaced;
  size_t begin = 0;
  for (size_t end; left != 0 && (end = text.find(from, begin)) != std::string::npos; --left) {
    replaced.append(text, begin, end - begin).append(to);
    begin = end + from.size();
  }
  return replaced.append(text, begin);
}

// Beyond ASCII, cases need tables that no known chat template needs.
Value with_case(const std::string& text, std::string_view name) {
  std::string changed = text;
  for (size_t i = 0; i < changed.size(); ++i) {
    char& c = changed[i];
    if (static_cast<uint8_t>(c) >= 0x80) {
      throw TemplateError{std::string(name) + " of letters beyond ASCII is not known here"};
    }
    const bool up = name == "upper" || (name == "capitalize" && i == 0);
    if (up && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!up && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return changed;
}

bool starts_or_ends(const std::string& text, const Arguments& arguments, bool start) {
  const auto fits = [&](const Value& part) {
    if (!part.is_string()) throw TemplateError{"startswith and endswith need a string"};
    return start ? text.starts_with(part.string()) : text.ends_with(part.string());
  };
  if (arguments.positional.empty()) throw TemplateError{"startswith and endswith need a string"};
  const Value& wanted = arguments.positional[0];
  if (!wanted.is_list()) return fits(wanted);
  return std::any_of(wanted.list().begin(), wanted.list().end(), fits);
}

constexpr auto kStringMethods =
    std::to_array<std::string_view>({"strip", "lstrip", "rstrip", "split", "replace", "startswith",
                                     "endswith", "upper", "lower", "capitalize", "find"});
constexpr auto kDictionaryMethods =
    std::to_array<std::string_view>({"items", "keys", "values", "get"});

Value string_method(const std::string& text, std::string_view name, const Arguments& arguments) {
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Value* characters = arguments.find(0, "chars");
    return strip(text,
                 characters != nullptr && characters->is_string() ? &characters->string() : nullptr,
                 name != "rstrip", name != "lstrip");
  }
  if (name == "split") return split(text, arguments);
  if (name == "replace") return replace(text, arguments);
  if (name == "startswith" || name == "endswith") {
    return starts_or_ends(text, arguments, name == "startswith");
  }
  if (name == "find") {
    const size_t at = text.find(text_argument(arguments, 0, "find"));
    if (at == std::string::npos) return int64_t{-1};
    return static_cast<int64_t>(utf8_decode(std::string_view(text).substr(0, at)).size());
  }
  return with_case(text, name);
}

Value dictionary_method(const Value& value, std::string_view name, const Arguments& arguments) {
  if (name == "get") {
    const Value* found = value.find(text_argument(arguments, 0, "get"));
    if (found != nullptr) return *found;
    const Value* otherwise = arguments.find(1, "default");
    return otherwise != nullptr ? *otherwise : Value(nullptr);
  }
  List listed;
  for (const auto& [key, item] : value.dictionary()) {
    if (name == "items") listed.emplace_back(List{Value(key), item});
    if (name == "keys") listed.emplace_back(key);
    if (name == "values") listed.push_back(item);
  }
  return listed;
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  const auto among = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.is_string()) return among(kStringMethods);
  return value.is_dictionary() && among(kDictionaryMethods);
}

Value call_method(const Value& value, std::string_view name, const Arguments& arguments) {
  if (value.is_string()) return string_method(value.string(), name, arguments);
  return dictionary_method(value, name, arguments);
}

std::string strip(const std::string& text, const std::string* characters, bool left, bool right) {
  const std::u32string all = utf8_decode(text);
  const std::u32string unwanted =
      characters != nullptr ? utf8_decode(*characters) : std::u32string();
  const auto goes = [&](char32_t character) {
    return characters != nullptr ? unwanted.find(character) != std::u32string::npos
                                 : is_python_space(character);
  };
  size_t begin = 0;
  size_t end = all.size();
  while (left && begin < end && goes(all[begin])) ++begin;
  while (right && end > begin && goes(all[end - 1])) --end;
  return utf8_encode(std::u32string_view(all).substr(begin, end - begin));
}

}  // namespace sapwood::chat
