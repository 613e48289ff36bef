#include "template/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "template/value.h"
#include "text/utf8.h"

namespace sapwood::chat {
namespace {

bool is_white(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);  // Jinja drops one at the end
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag();
      text_before(tag);
      if (tag == std::string_view::npos) break;
      read_tag();
    }
    add(Token::kEnd, "");
    return std::move(tokens_);
  }

 private:
  size_t next_tag() const {
    for (size_t i = at_; (i = source_.find('{', i)) != std::string_view::npos; ++i) {
      const char next = i + 1 < source_.size() ? source_[i + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return i;
    }
    return std::string_view::npos;
  }

  void text_before(size_t tag) {
    std::string_view text = source_.substr(at_, tag - at_);
    const int line = line_;
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    at_ = tag == std::string_view::npos ? source_.size() : tag;
    if (strip_next_) {
      while (!text.empty() && is_white(text.front())) text.remove_prefix(1);
    } else if (trim_break_ && text.starts_with('\n')) {
      text.remove_prefix(1);
    }
    if (tag != std::string_view::npos) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      if (sign == '-') {
        while (!text.empty() && is_white(text.back())) text.remove_suffix(1);
      } else if (sign != '+' && source_[tag + 1] != '{') {
        // White space alone between the line's beginning and the tag.
        size_t end = text.size();
        while (end > 0 && is_white(text[end - 1]) && text[end - 1] != '\n') --end;
        const bool line_begins =
            end > 0 ? text[end - 1] == '\n' : begins_line_ || text_was_cut(text);
        if (line_begins) text = text.substr(0, end);
      }
    }
    if (!text.empty()) tokens_.push_back({Token::kText, std::string(text), line});
    strip_next_ = trim_break_ = false;
    begins_line_ = false;
  }

  // Whether what is left of the text began behind a line break that a tag before it has taken.
  bool text_was_cut(std::string_view text) const {
    const char* before = text.data() - 1;
    return before >= source_.data() && *before == '\n';
  }

  void read_tag() {
    const char kind = source_[at_ + 1];
    at_ += 2;
    if (kind == '#') return read_comment();
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    const bool block = kind == '%';
    add(block ? Token::kBlockBegin : Token::kPrintBegin, "");
    const std::string_view end = block ? "%}" : "}}";
    std::vector<char> open;  // brackets, within which }} does not end the tag
    for (;;) {
      while (at_ < source_.size() && is_white(source_[at_])) {
        if (source_[at_] == '\n') ++line_;
        ++at_;
      }
      const std::string_view rest = source_.substr(at_);
      if (rest.empty()) throw TemplateError{"a tag is not closed", line_};
      const bool signed_end =
          (rest[0] == '-' || (block && rest[0] == '+')) && rest.substr(1).starts_with(end);
      if (open.empty() && (signed_end || rest.starts_with(end))) {
        strip_next_ = rest[0] == '-';
        trim_break_ = block && rest[0] != '+';
        at_ += end.size() + (signed_end ? 1 : 0);
        add(block ? Token::kBlockEnd : Token::kPrintEnd, "");
        return;
      }
      read_token(rest, &open);
    }
  }

  void read_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) throw TemplateError{"a comment is not closed", line_};
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    strip_next_ = end > at_ && source_[end - 1] == '-';
    trim_break_ = !(end > at_ && source_[end - 1] == '+');
    at_ = end + 2;
  }

  void read_token(std::string_view rest, std::vector<char>* open) {
    const char first = rest[0];
    if (first == '"' || first == '\'') return read_string(first);
    if (is_digit(first)) return read_number(rest);
    if (is_name(first)) {
      const auto end = std::find_if_not(rest.begin(), rest.end(), is_name);
      const std::string name(rest.begin(), end);
      at_ += name.size();
      return add(Token::kName, name);
    }
    constexpr std::array<std::string_view, 6> kLong = {"==", "!=", ">=", "<=", "//", "**"};
    for (const std::string_view operation : kLong) {
      if (rest.starts_with(operation)) {
        at_ += 2;
        return add(Token::kOperator, std::string(operation));
      }
    }
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    if (kOpening.find(first) != std::string_view::npos) open->push_back(first);
    if (const size_t which = kClosing.find(first); which != std::string_view::npos) {
      if (open->empty() || open->back() != kOpening[which]) {
        throw TemplateError{std::string("unexpected '") + first + "'", line_};
      }
      open->pop_back();
    }
    if (std::string_view("()[]{}.,:|+-*/%~<>=").find(first) == std::string_view::npos) {
      throw TemplateError{std::string("unexpected character '") + first + "'", line_};
    }
    ++at_;
    add(Token::kOperator, std::string(1, first));
  }

  void read_number(std::string_view rest) {
    size_t end = 0;
    while (end < rest.size() && is_digit(rest[end])) ++end;
    Token::Kind kind = Token::kInteger;
    if (end + 1 < rest.size() && rest[end] == '.' && is_digit(rest[end + 1])) {
      kind = Token::kFloat;
      ++end;
      while (end < rest.size() && is_digit(rest[end])) ++end;
    }
    if (kind == Token::kInteger && end > 18) {
      throw TemplateError{"a number with too many digits", line_};
    }
    at_ += end;
    add(kind, std::string(rest.substr(0, end)));
  }

  void read_string(char quote) {
    const int line = line_;
    std::string value;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      char c = source_[at_];
      if (c == '\n') ++line_;
      if (c != '\\' || at_ + 1 == source_.size()) {
        value += c;
        continue;
      }
      c = source_[++at_];
      constexpr std::string_view kNames = "ntrbfav\\'\"";
      constexpr std::string_view kValues = "\n\t\r\b\f\a\v\\'\"";
      if (const size_t which = kNames.find(c); which != std::string_view::npos) {
        value += kValues[which];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        value += escaped_character(c == 'x' ? 2 : c == 'u' ? 4 : 8);
      } else {
        value += '\\';
        value += c;
      }
    }
    if (at_ >= source_.size()) throw TemplateError{"a string is not closed", line};
    ++at_;
    tokens_.push_back({Token::kString, std::move(value), line});
  }

  std::string escaped_character(size_t digits) {
    char32_t number = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char c = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
        throw TemplateError{"an escape in a string is not complete", line_};
      }
      number = number * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 32) - 'a' + 10);
      ++at_;
    }
    std::string text;
    append_utf8(number, &text);
    if (!is_utf8(text)) throw TemplateError{"an escape that is no character", line_};
    return text;
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool strip_next_ = false;
  bool trim_break_ = false;
  bool begins_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace sapwood::chat
