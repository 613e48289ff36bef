// Expressions of a template, compiled to functions. The grammar and its precedences are Jinja's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "template/lexer.h"
#include "template/scope.h"

namespace sapwood::chat {

// A place in a template's tokens; the statements' parser goes on from where an expression ends.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Expression expression();             // with `a if b else c`
  Expression expression_without_if();  // what a for loop goes over
  Expression tuple();                  // one expression, or several between commas: a list

  const Token& current() const { return tokens_[at_]; }
  const Token& advance() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool take_operator(std::string_view text);
  bool take_name(std::string_view text);
  void expect_operator(std::string_view text);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& what) const;

 private:
  struct CallArguments {
    std::vector<Expression> positional;
    std::vector<std::pair<std::string, Expression>> named;

    Arguments evaluate(Scope& scope) const;
  };

  Expression conjunction();
  Expression negation();
  Expression comparison();
  Expression sum();
  Expression concatenation();
  Expression product();
  Expression power();
  Expression unary(bool filters);
  Expression primary();
  Expression postfix(Expression value);
  Expression subscript(Expression value);
  Expression filters_and_tests(Expression value);
  Expression filter(Expression value);
  Expression test(Expression value);
  Expression list();
  Expression dictionary();
  Expression in_brackets();
  CallArguments call_arguments();

  // Guards the stack against a hostile template.
  struct Nesting {
    explicit Nesting(ExpressionParser* parser);
    ~Nesting() { --parser_->nesting_; }
    ExpressionParser* parser_;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

// Calls a function; TemplateError for anything else.
Value call(const Value& function, const Arguments& arguments);

}  // namespace sapwood::chat
