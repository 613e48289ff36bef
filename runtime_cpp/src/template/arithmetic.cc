#include "template/arithmetic.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

namespace sapwood::chat {
namespace {

constexpr int64_t kLongestRepeat = 10'000;

[[noreturn]] void refuse(std::string_view operation, const Value& left, const Value& right) {
  for (const Value* value : {&left, &right}) {
    if (value->is_undefined())
      throw TemplateError{"'" + value->undefined_name() + "' is undefined"};
  }
  throw TemplateError{"'" + std::string(operation) + "' of values of the types " +
                      left.type_name() + " and " + right.type_name() + " is not possible"};
}

// Empty where an int64_t does not hold it; Python's integers have no limit.
std::optional<int64_t> integers(std::string_view operation, int64_t left, int64_t right) {
  int64_t result = 0;
  if (operation == "+") {
    if (!__builtin_add_overflow(left, right, &result)) return result;
  } else if (operation == "-") {
    if (!__builtin_sub_overflow(left, right, &result)) return result;
  } else if (operation == "*") {
    if (!__builtin_mul_overflow(left, right, &result)) return result;
  } else if (right == -1) {
    if (operation == "%") return 0;
    if (left != std::numeric_limits<int64_t>::min()) return -left;
  } else {
    const int64_t remainder = left % right;
    const bool down = remainder != 0 && (remainder < 0) != (right < 0);  // floors, as Python does
    if (operation == "//") return left / right - (down ? 1 : 0);
    return remainder + (down ? right : 0);
  }
  return std::nullopt;
}

Value numbers(std::string_view operation, const Value& left, const Value& right) {
  const bool divides = operation == "/" || operation == "//" || operation == "%";
  if (divides && right.number() == 0) throw TemplateError{"division by zero"};
  if (operation == "/") return left.number() / right.number();
  if (operation == "**") {
    const double result = std::pow(left.number(), right.number());
    const bool whole = !left.is_float() && !right.is_float() && right.integer() >= 0;
    if (!whole) return result;
    if (std::fabs(result) > 9e15) throw TemplateError{"a number is too large"};
    return static_cast<int64_t>(result);
  }
  if (left.is_float() || right.is_float()) {
    const double a = left.number();
    const double b = right.number();
    if (operation == "+") return a + b;
    if (operation == "-") return a - b;
    if (operation == "*") return a * b;
    const double quotient = std::floor(a / b);
    return operation == "//" ? quotient : a - quotient * b;
  }
  const std::optional<int64_t> result = integers(operation, left.integer(), right.integer());
  if (!result) throw TemplateError{"a number is too large"};
  return *result;
}

}  // namespace

Value arithmetic(std::string_view operation, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) return numbers(operation, left, right);
  if (operation == "+" && left.is_string() && right.is_string()) {
    return left.string() + right.string();
  }
  if (operation == "+" && left.is_list() && right.is_list()) {
    List joined = left.list();
    joined.insert(joined.end(), right.list().begin(), right.list().end());
    return joined;
  }
  if (operation == "*" && left.is_string() && right.is_integer()) {
    if (right.integer() > kLongestRepeat) throw TemplateError{"a string is repeated too often"};
    std::string repeated;
    for (int64_t i = 0; i < right.integer(); ++i) repeated += left.string();
    return repeated;
  }
  refuse(operation, left, right);
}

Value negate(const Value& value) {
  if (value.is_float()) return -value.number();
  return arithmetic("-", Value(int64_t{0}), value);
}

}  // namespace sapwood::chat
