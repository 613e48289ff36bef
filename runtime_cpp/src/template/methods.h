// Methods of strings and dictionaries, as Python has them.
#pragma once

#include <string>
#include <string_view>

#include "template/value.h"

namespace sapwood::chat {

bool has_method(const Value& value, std::string_view name);

// Throws TemplateError where the arguments do not fit.
Value call_method(const Value& value, std::string_view name, const Arguments& arguments);

// str.strip and its two halves: `characters` (UTF-8), or white space where it is null.
std::string strip(const std::string& text, const std::string* characters, bool left, bool right);

}  // namespace sapwood::chat
