// Python's arithmetic for the values of a template.
#pragma once

#include <string_view>

#include "template/value.h"

namespace sapwood::chat {

// `operation` is one of + - * / // % **; throws TemplateError where the types do not fit.
Value arithmetic(std::string_view operation, const Value& left, const Value& right);
Value negate(const Value& value);

}  // namespace sapwood::chat
