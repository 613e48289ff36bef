// A template's statements, compiled to functions: for, if, set, macro, break, continue and the
// block `generation`, which marks the assistant's words for training and changes nothing.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "template/expression_parser.h"
#include "template/scope.h"

namespace sapwood::chat {

class StatementParser {
 public:
  // Throws TemplateError.
  explicit StatementParser(std::string_view source) : in_(tokenize_template(source)) {}

  Block parse();

 private:
  Block block_until(std::initializer_list<std::string_view> ends);
  Statement tag();
  Statement for_loop();
  Statement conditional();
  Statement assignment();
  Statement macro();
  Statement generation();
  void end_tag();

  ExpressionParser in_;
  int loops_ = 0;
  int nesting_ = 0;
};

// Runs statements until one of them breaks or goes on with the loop around them.
Flow run_block(const Block& block, Scope& scope, std::string* out);

}  // namespace sapwood::chat
