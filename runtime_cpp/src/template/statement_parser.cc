#include "template/statement_parser.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace sapwood::chat {
namespace {

constexpr int kDeepestTags = 50;
constexpr int kDeepestCalls = 50;

struct Parameter {
  std::string name;
  Expression otherwise;  // empty: none
};

// Names that one value, or the parts of one, go to.
void assign(const std::vector<std::string>& names, Value value, Scope& scope) {
  if (names.size() == 1) {
    scope.set(names[0], std::move(value));
    return;
  }
  const List parts = elements(value);
  if (parts.size() != names.size()) {
    throw TemplateError{std::to_string(parts.size()) + " values for " +
                        std::to_string(names.size()) + " names"};
  }
  for (size_t i = 0; i < names.size(); ++i) scope.set(names[i], parts[i]);
}

// What a loop's body sees as `loop`.
Dictionary loop_state(const List& items, size_t at) {
  const int64_t index = static_cast<int64_t>(at);
  const int64_t size = static_cast<int64_t>(items.size());
  return {{"index", index + 1},
          {"index0", index},
          {"revindex", size - index},
          {"revindex0", size - index - 1},
          {"first", index == 0},
          {"last", index + 1 == size},
          {"length", size},
          {"previtem", at > 0 ? items[at - 1] : Value::undefined("loop.previtem")},
          {"nextitem", at + 1 < items.size() ? items[at + 1] : Value::undefined("loop.nextitem")}};
}

// Counts the calls of macros that are open, also where one of them throws.
class OpenCall {
 public:
  explicit OpenCall(Globals* globals) : globals_(globals) {
    if (++globals_->calls > kDeepestCalls) {
      --globals_->calls;
      throw TemplateError{"macros call each other too deep"};
    }
  }
  ~OpenCall() { --globals_->calls; }
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;

 private:
  Globals* globals_;
};

// A macro sees what it was given and what the template has set at its top.
Value call_macro(const std::string& name, const std::vector<Parameter>& parameters,
                 const Block& body, Globals* globals, const Arguments& arguments) {
  const OpenCall open(globals);
  if (arguments.positional.size() > parameters.size()) {
    throw TemplateError{"the macro '" + name + "' takes fewer arguments"};
  }
  Scope inner(globals);
  inner.enter();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value* given = arguments.find(i, parameters[i].name);
    Value value = Value::undefined(parameters[i].name);
    if (given != nullptr) {
      value = *given;
    } else if (parameters[i].otherwise) {
      value = parameters[i].otherwise(inner);
    }
    inner.set(parameters[i].name, std::move(value));
  }
  std::string text;
  run_block(body, inner, &text);
  return text;
}

}  // namespace

Flow run_block(const Block& block, Scope& scope, std::string* out) {
  for (const Statement& statement : block) {
    const Flow flow = statement(scope, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Block StatementParser::parse() {
  Block block = block_until({});
  if (in_.current().kind != Token::kEnd) in_.fail("a tag that closes nothing");
  return block;
}

void StatementParser::end_tag() {
  if (in_.current().kind != Token::kBlockEnd) in_.fail("expected the end of the tag");
  in_.advance();
}

// Statements up to a tag of one of these names, whose opening is consumed and whose name is not.
Block StatementParser::block_until(std::initializer_list<std::string_view> ends) {
  if (++nesting_ > kDeepestTags) in_.fail("tags are nested too deep");
  Block block;
  for (;;) {
    const Token token = in_.current();
    if (token.kind == Token::kEnd) {
      if (ends.size() > 0) in_.fail("expected the tag " + std::string(*ends.begin()));
      break;
    }
    in_.advance();
    if (token.kind == Token::kText) {
      block.push_back([text = token.text](Scope&, std::string* out) {
        *out += text;
        return Flow::kNext;
      });
    } else if (token.kind == Token::kPrintBegin) {
      block.push_back([value = in_.tuple(), line = token.line](Scope& scope, std::string* out) {
        scope.line = line;
        *out += to_text(value(scope));
        return Flow::kNext;
      });
      if (in_.current().kind != Token::kPrintEnd) in_.fail("expected the end of the tag");
      in_.advance();
    } else {
      const bool ended = std::any_of(ends.begin(), ends.end(),
                                     [&](std::string_view end) { return in_.is_name(end); });
      if (ended) break;
      block.push_back(tag());
    }
  }
  --nesting_;
  return block;
}

Statement StatementParser::tag() {
  const int line = in_.current().line;
  Statement statement;
  if (in_.take_name("for")) {
    statement = for_loop();
  } else if (in_.take_name("if")) {
    statement = conditional();
  } else if (in_.take_name("set")) {
    statement = assignment();
  } else if (in_.take_name("macro")) {
    statement = macro();
  } else if (in_.take_name("generation")) {
    statement = generation();
  } else if (loops_ > 0 && (in_.is_name("break") || in_.is_name("continue"))) {
    const Flow flow = in_.advance().text == "break" ? Flow::kBreak : Flow::kContinue;
    end_tag();
    return [flow](Scope&, std::string*) { return flow; };
  } else {
    in_.fail("a tag that this version does not know");
  }
  return [line, statement = std::move(statement)](Scope& scope, std::string* out) {
    scope.line = line;
    return statement(scope, out);
  };
}

Statement StatementParser::for_loop() {
  std::vector<std::string> names{in_.expect_name()};
  while (in_.take_operator(",")) names.push_back(in_.expect_name());
  if (!in_.take_name("in")) in_.fail("expected 'in'");
  Expression over = in_.expression_without_if();
  Expression condition;
  if (in_.take_name("if")) condition = in_.expression();
  end_tag();
  ++loops_;
  Block body = block_until({"endfor", "else"});
  --loops_;
  Block otherwise;
  if (in_.take_name("else")) {
    end_tag();
    otherwise = block_until({"endfor"});
  }
  in_.advance();
  end_tag();
  return
      [names = std::move(names), over = std::move(over), condition = std::move(condition),
       body = std::move(body), otherwise = std::move(otherwise)](Scope& scope, std::string* out) {
        List items = elements(over(scope));
        scope.enter();
        if (condition) {
          std::erase_if(items, [&](const Value& item) {
            assign(names, item, scope);
            return !condition(scope).truth();
          });
        }
        scope.leave();
        if (items.empty()) return run_block(otherwise, scope, out);
        for (size_t i = 0; i < items.size(); ++i) {
          scope.enter();
          scope.set("loop", loop_state(items, i));
          assign(names, items[i], scope);
          const Flow flow = run_block(body, scope, out);
          scope.leave();
          if (flow == Flow::kBreak) break;
        }
        return Flow::kNext;
      };
}

Statement StatementParser::conditional() {
  std::vector<std::pair<Expression, Block>> cases;  // an empty condition always holds
  cases.emplace_back(in_.expression(), Block());
  for (;;) {
    end_tag();
    cases.back().second = block_until({"endif", "elif", "else"});
    if (in_.take_name("elif")) {
      cases.emplace_back(in_.expression(), Block());
    } else if (in_.take_name("else")) {
      cases.emplace_back(Expression(), Block());
    } else {
      break;
    }
  }
  in_.advance();
  end_tag();
  return [cases = std::move(cases)](Scope& scope, std::string* out) {
    for (const auto& [condition, block] : cases) {
      if (!condition || condition(scope).truth()) return run_block(block, scope, out);
    }
    return Flow::kNext;
  };
}

Statement StatementParser::assignment() {
  std::vector<std::string> names{in_.expect_name()};
  std::optional<std::string> field;
  if (in_.take_operator(".")) field = in_.expect_name();
  while (!field && in_.take_operator(",")) names.push_back(in_.expect_name());
  if (in_.take_operator("=")) {
    Expression value = in_.tuple();
    end_tag();
    return [names = std::move(names), field = std::move(field), value = std::move(value)](
               Scope& scope, std::string*) {
      Value assigned = value(scope);
      if (!field) {
        assign(names, std::move(assigned), scope);
        return Flow::kNext;
      }
      const Value holder = scope.get(names[0]);
      if (!holder.is_dictionary()) throw TemplateError{"'" + names[0] + "' is no namespace"};
      Dictionary& fields = holder.namespace_fields();
      const auto found = std::find_if(fields.begin(), fields.end(),
                                      [&](const auto& entry) { return entry.first == *field; });
      if (found != fields.end()) {
        found->second = std::move(assigned);
      } else {
        fields.emplace_back(*field, std::move(assigned));
      }
      return Flow::kNext;
    };
  }
  if (field || names.size() > 1) in_.fail("expected '='");
  end_tag();
  Block body = block_until({"endset"});
  in_.advance();
  end_tag();
  return [name = names[0], body = std::move(body)](Scope& scope, std::string*) {
    std::string text;
    const Flow flow = run_block(body, scope, &text);
    scope.set(name, std::move(text));
    return flow;
  };
}

Statement StatementParser::macro() {
  const std::string name = in_.expect_name();
  std::vector<Parameter> parameters;
  in_.expect_operator("(");
  while (!in_.is_operator(")")) {
    Parameter parameter{in_.expect_name(), {}};
    if (in_.take_operator("=")) parameter.otherwise = in_.expression();
    parameters.push_back(std::move(parameter));
    if (!in_.take_operator(",")) break;
  }
  in_.expect_operator(")");
  end_tag();
  const int loops = std::exchange(loops_, 0);
  Block body = block_until({"endmacro"});
  loops_ = loops;
  in_.advance();
  end_tag();
  auto shared = std::make_shared<const std::pair<std::vector<Parameter>, Block>>(
      std::move(parameters), std::move(body));
  return [name, shared](Scope& scope, std::string*) {
    // What it holds on to outlives every call, as no value outlives the rendering.
    scope.set(name, Function([name, shared,
                              globals = scope.globals()](const Arguments& arguments) -> Value {
                return call_macro(name, shared->first, shared->second, globals, arguments);
              }));
    return Flow::kNext;
  };
}

Statement StatementParser::generation() {
  end_tag();
  Block body = block_until({"endgeneration"});
  in_.advance();
  end_tag();
  return [body = std::move(body)](Scope& scope, std::string* out) {
    scope.enter();
    const Flow flow = run_block(body, scope, out);
    scope.leave();
    return flow;
  };
}

}  // namespace sapwood::chat
