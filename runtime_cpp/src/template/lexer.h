// A template's source as text and tokens, with Jinja's rules of white space: the first line break
// behind a block tag goes, so does white space between a line's beginning and a block tag, and `-`
// takes all white space on its side.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sapwood::chat {

struct Token {
  enum Kind {
    kText,        // outside of tags
    kBlockBegin,  // {%
    kBlockEnd,
    kPrintBegin,  // {{
    kPrintEnd,
    kName,
    kString,  // its value, escapes resolved
    kInteger,
    kFloat,
    kOperator,
    kEnd
  };
  Kind kind = kEnd;
  std::string text;
  int line = 1;
};

// Throws TemplateError.
std::vector<Token> tokenize_template(std::string_view source);

}  // namespace sapwood::chat
