#include "template/expression_parser.h"

#include <cstdlib>
#include <utility>

#include "template/arithmetic.h"
#include "template/builtins.h"

namespace sapwood::chat {
namespace {

constexpr int kDeepest = 100;  // brackets and unary operators inside each other

Expression constant(Value value) {
  return [value = std::move(value)](Scope&) { return value; };
}

Expression arithmetic_of(std::string operation, Expression left, Expression right) {
  return [operation = std::move(operation), left = std::move(left),
          right = std::move(right)](Scope& scope) {
    const Value first = left(scope);
    return arithmetic(operation, first, right(scope));
  };
}

bool compares(const std::string& operation, const Value& left, const Value& right) {
  if (operation == "==") return equal(left, right);
  if (operation == "!=") return !equal(left, right);
  if (operation == "in") return contains(right, left);
  if (operation == "not in") return !contains(right, left);
  const int order = compare(left, right);
  if (operation == "<") return order < 0;
  if (operation == "<=") return order <= 0;
  return operation == ">" ? order > 0 : order >= 0;
}

}  // namespace

Value call(const Value& function, const Arguments& arguments) {
  if (function.is_undefined()) {
    throw TemplateError{"'" + function.undefined_name() + "' is undefined"};
  }
  if (!function.is_function()) {
    throw TemplateError{"a value of the type " + function.type_name() + " cannot be called"};
  }
  return function.function()(arguments);
}

Arguments ExpressionParser::CallArguments::evaluate(Scope& scope) const {
  Arguments arguments;
  for (const Expression& part : positional) arguments.positional.push_back(part(scope));
  for (const auto& [name, part] : named) arguments.named.emplace_back(name, part(scope));
  return arguments;
}

ExpressionParser::Nesting::Nesting(ExpressionParser* parser) : parser_(parser) {
  if (++parser_->nesting_ > kDeepest) parser_->fail("an expression is nested too deep");
}

bool ExpressionParser::is_operator(std::string_view text) const {
  return current().kind == Token::kOperator && current().text == text;
}

bool ExpressionParser::is_name(std::string_view text) const {
  return current().kind == Token::kName && current().text == text;
}

bool ExpressionParser::take_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  advance();
  return true;
}

bool ExpressionParser::take_name(std::string_view text) {
  if (!is_name(text)) return false;
  advance();
  return true;
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!take_operator(text)) fail("expected '" + std::string(text) + "'");
}

std::string ExpressionParser::expect_name() {
  if (current().kind != Token::kName) fail("expected a name");
  return advance().text;
}

void ExpressionParser::fail(const std::string& what) const {
  const std::string found = current().kind == Token::kEnd || current().text.empty()
                                ? ""
                                : ", found '" + current().text + "'";
  throw TemplateError{what + found, current().line};
}

Expression ExpressionParser::tuple() {
  std::vector<Expression> parts{expression()};
  bool several = false;
  while (take_operator(",")) {
    several = true;
    if (current().kind == Token::kBlockEnd || current().kind == Token::kPrintEnd) break;
    parts.push_back(expression());
  }
  if (!several) return parts[0];
  return [parts = std::move(parts)](Scope& scope) {
    List list;
    for (const Expression& part : parts) list.push_back(part(scope));
    return Value(std::move(list));
  };
}

Expression ExpressionParser::expression() {
  const Nesting nesting(this);
  Expression value = expression_without_if();
  while (take_name("if")) {
    Expression condition = expression_without_if();
    Expression otherwise = constant(Value::undefined("the other case of an if"));
    if (take_name("else")) otherwise = expression();
    value = [value = std::move(value), condition = std::move(condition),
             otherwise = std::move(otherwise)](Scope& scope) {
      return condition(scope).truth() ? value(scope) : otherwise(scope);
    };
  }
  return value;
}

Expression ExpressionParser::expression_without_if() {
  Expression left = conjunction();
  while (take_name("or")) {
    left = [left = std::move(left), right = conjunction()](Scope& scope) {
      Value first = left(scope);
      return first.truth() ? first : right(scope);
    };
  }
  return left;
}

Expression ExpressionParser::conjunction() {
  Expression left = negation();
  while (take_name("and")) {
    left = [left = std::move(left), right = negation()](Scope& scope) {
      Value first = left(scope);
      return first.truth() ? right(scope) : first;
    };
  }
  return left;
}

Expression ExpressionParser::negation() {
  const Nesting nesting(this);
  if (!take_name("not")) return comparison();
  return [value = negation()](Scope& scope) { return Value(!value(scope).truth()); };
}

// `a < b < c` compares each with the next.
Expression ExpressionParser::comparison() {
  Expression first = sum();
  std::vector<std::pair<std::string, Expression>> rest;
  for (;;) {
    std::string operation;
    if (current().kind == Token::kOperator) {
      for (const char* known : {"==", "!=", "<=", ">=", "<", ">"}) {
        if (current().text == known) operation = known;
      }
    }
    if (is_name("in")) operation = "in";
    if (is_name("not") && tokens_[at_ + 1].kind == Token::kName && tokens_[at_ + 1].text == "in") {
      operation = "not in";
      advance();
    }
    if (operation.empty()) break;
    advance();
    rest.emplace_back(std::move(operation), sum());
  }
  if (rest.empty()) return first;
  return [first = std::move(first), rest = std::move(rest)](Scope& scope) {
    Value left = first(scope);
    for (const auto& [operation, expression] : rest) {
      Value right = expression(scope);
      if (!compares(operation, left, right)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  };
}

Expression ExpressionParser::sum() {
  Expression left = concatenation();
  while (is_operator("+") || is_operator("-")) {
    const std::string operation = advance().text;
    left = arithmetic_of(operation, std::move(left), concatenation());
  }
  return left;
}

Expression ExpressionParser::concatenation() {
  Expression left = product();
  while (take_operator("~")) {
    left = [left = std::move(left), right = product()](Scope& scope) {
      const std::string first = to_text(left(scope));
      return Value(first + to_text(right(scope)));
    };
  }
  return left;
}

Expression ExpressionParser::product() {
  Expression left = power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    const std::string operation = advance().text;
    left = arithmetic_of(operation, std::move(left), power());
  }
  return left;
}

Expression ExpressionParser::power() {
  Expression left = unary(true);
  while (take_operator("**")) left = arithmetic_of("**", std::move(left), unary(true));
  return left;
}

Expression ExpressionParser::unary(bool filters) {
  const Nesting nesting(this);
  Expression value;
  if (take_operator("-")) {
    value = [inner = unary(false)](Scope& scope) { return negate(inner(scope)); };
  } else if (take_operator("+")) {
    value = unary(false);
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return filters ? filters_and_tests(std::move(value)) : value;
}

Expression ExpressionParser::primary() {
  const Token token = current();
  switch (token.kind) {
    case Token::kName: {
      advance();
      if (token.text == "true" || token.text == "True") return constant(true);
      if (token.text == "false" || token.text == "False") return constant(false);
      if (token.text == "none" || token.text == "None") return constant(nullptr);
      return [name = token.text](Scope& scope) { return scope.get(name); };
    }
    case Token::kString: {
      std::string text;
      while (current().kind == Token::kString) text += advance().text;
      return constant(std::move(text));
    }
    case Token::kInteger:
      advance();
      return constant(static_cast<int64_t>(std::atoll(token.text.c_str())));
    case Token::kFloat:
      advance();
      return constant(std::atof(token.text.c_str()));
    default:
      if (is_operator("(")) return in_brackets();
      if (is_operator("[")) return list();
      if (is_operator("{")) return dictionary();
      fail("expected an expression");
  }
}

Expression ExpressionParser::in_brackets() {
  advance();
  if (take_operator(")")) return constant(List());
  Expression first = expression();
  if (take_operator(")")) return first;
  std::vector<Expression> parts{std::move(first)};
  while (take_operator(",")) {
    if (is_operator(")")) break;
    parts.push_back(expression());
  }
  expect_operator(")");
  return [parts = std::move(parts)](Scope& scope) {
    List list;
    for (const Expression& part : parts) list.push_back(part(scope));
    return Value(std::move(list));
  };
}

Expression ExpressionParser::list() {
  advance();
  std::vector<Expression> parts;
  while (!is_operator("]")) {
    parts.push_back(expression());
    if (!take_operator(",")) break;
  }
  expect_operator("]");
  return [parts = std::move(parts)](Scope& scope) {
    List list;
    for (const Expression& part : parts) list.push_back(part(scope));
    return Value(std::move(list));
  };
}

Expression ExpressionParser::dictionary() {
  advance();
  std::vector<std::pair<Expression, Expression>> parts;
  while (!is_operator("}")) {
    Expression key = expression();
    expect_operator(":");
    parts.emplace_back(std::move(key), expression());
    if (!take_operator(",")) break;
  }
  expect_operator("}");
  return [parts = std::move(parts)](Scope& scope) {
    Dictionary dictionary;
    for (const auto& [key, value] : parts) {
      const Value name = key(scope);
      if (!name.is_string()) throw TemplateError{"a key of a dictionary is not a string"};
      Value entry = value(scope);
      std::erase_if(dictionary, [&](const auto& other) { return other.first == name.string(); });
      dictionary.emplace_back(name.string(), std::move(entry));
    }
    return Value(std::move(dictionary));
  };
}

Expression ExpressionParser::postfix(Expression value) {
  for (;;) {
    if (take_operator(".")) {
      if (current().kind == Token::kInteger) {
        const int64_t index = std::atoll(advance().text.c_str());
        value = [value = std::move(value), index](Scope& scope) {
          return item(value(scope), Value(index));
        };
        continue;
      }
      value = [value = std::move(value), name = expect_name()](Scope& scope) {
        return attribute(value(scope), name);
      };
    } else if (is_operator("[")) {
      value = subscript(std::move(value));
    } else if (is_operator("(")) {
      value = [value = std::move(value), arguments = call_arguments()](Scope& scope) {
        const Value function = value(scope);
        return call(function, arguments.evaluate(scope));
      };
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::subscript(Expression value) {
  advance();
  Expression parts[3];
  int part = 0;
  bool slices = false;
  while (!is_operator("]")) {
    if (take_operator(":")) {
      slices = true;
      if (++part > 2) fail("a slice has at most three parts");
    } else {
      if (parts[part]) fail("expected ']'");
      parts[part] = expression();
    }
  }
  advance();
  if (!slices) {
    if (!parts[0]) fail("a subscript is empty");
    return [value = std::move(value), index = std::move(parts[0])](Scope& scope) {
      const Value whole = value(scope);
      return item(whole, index(scope));
    };
  }
  return [value = std::move(value), begin = std::move(parts[0]), end = std::move(parts[1]),
          step = std::move(parts[2])](Scope& scope) {
    const auto given = [&](const Expression& bound) { return bound ? bound(scope) : Value(); };
    return slice(value(scope), given(begin), given(end), given(step));
  };
}

ExpressionParser::CallArguments ExpressionParser::call_arguments() {
  const Nesting nesting(this);
  expect_operator("(");
  CallArguments arguments;
  while (!is_operator(")")) {
    const Token& next = tokens_[at_ + 1];
    if (current().kind == Token::kName && next.kind == Token::kOperator && next.text == "=") {
      std::string name = expect_name();
      advance();
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      arguments.positional.push_back(expression());
    }
    if (!take_operator(",")) break;
  }
  expect_operator(")");
  return arguments;
}

Expression ExpressionParser::filters_and_tests(Expression value) {
  for (;;) {
    if (take_operator("|")) {
      value = filter(std::move(value));
    } else if (take_name("is")) {
      value = test(std::move(value));
    } else if (is_operator("(") || is_operator(".") || is_operator("[")) {
      value = postfix(std::move(value));
    } else {
      return value;
    }
  }
}

Expression ExpressionParser::filter(Expression value) {
  const std::string name = expect_name();
  const Filter found = find_filter(name);
  if (found == nullptr) fail("no filter named '" + name + "'");
  CallArguments arguments;
  if (is_operator("(")) arguments = call_arguments();
  return [value = std::move(value), found, arguments = std::move(arguments)](Scope& scope) {
    const Value input = value(scope);
    return found(input, arguments.evaluate(scope));
  };
}

Expression ExpressionParser::test(Expression value) {
  const bool negated = take_name("not");
  const std::string name = expect_name();
  const Test found = find_test(name);
  if (found == nullptr) fail("no test named '" + name + "'");
  CallArguments arguments;
  const bool argument_follows =
      current().kind == Token::kString || current().kind == Token::kInteger ||
      current().kind == Token::kFloat || is_operator("[") || is_operator("{") ||
      (current().kind == Token::kName && !is_name("else") && !is_name("or") && !is_name("and") &&
       !is_name("is"));
  if (is_operator("(")) {
    arguments = call_arguments();
  } else if (argument_follows) {
    arguments.positional.push_back(postfix(primary()));
  }
  return
      [value = std::move(value), found, negated, arguments = std::move(arguments)](Scope& scope) {
        const Value input = value(scope);
        return Value(found(input, arguments.evaluate(scope)) != negated);
      };
}

}  // namespace sapwood::chat
