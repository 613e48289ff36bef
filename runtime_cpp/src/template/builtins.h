// What templates may call: filters, tests, methods of values and functions, each as Jinja or Python
// has it. Unknown names are refused when a template is parsed (filters, tests) or when they are
// reached (methods).
#pragma once

#include <string>
#include <string_view>

#include "template/value.h"

namespace sapwood::chat {

using Filter = Value (*)(const Value& input, const Arguments& arguments);
using Test = bool (*)(const Value& input, const Arguments& arguments);

Filter find_filter(std::string_view name);  // null if there is none
Test find_test(std::string_view name);

// `value.name`: a method, or an entry of a dictionary. Undefined where there is neither.
Value attribute(const Value& value, const std::string& name);
// `value[index]`.
Value item(const Value& value, const Value& index);
// `value[begin:end:step]`; none of the three need be there.
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step);

// range, namespace, raise_exception, strftime_now.
Dictionary global_functions();

}  // namespace sapwood::chat
