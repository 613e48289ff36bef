#include "text/detokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/bpe.h"

namespace sapwood {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

bool is_byte_token(std::string_view text, char* byte) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return false;
  uint8_t value = 0;
  const char* begin = text.data() + 3;
  const auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
  *byte = static_cast<char>(value);
  return error == std::errc() && end == begin + 2;
}

std::string with_spaces(std::string_view text) {
  std::string spaced;
  for (size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with(kSpaceMark)) {
      spaced += ' ';
      at += kSpaceMark.size();
    } else {
      spaced += text[at++];
    }
  }
  return spaced;
}

}  // namespace

std::string Detokenizer::push(int32_t id) {
  std::string text;
  if (tokenizer_->is_special(id)) return text;
  const std::string* token = tokenizer_->token_text(id);
  if (token == nullptr) return text;
  if (tokenizer_->byte_level()) {
    std::string bytes;
    // An added token is written as it is, not in the byte alphabet.
    utf8_.push(from_byte_alphabet(*token, &bytes) ? bytes : *token, &text);
    return text;
  }
  char byte = 0;
  if (is_byte_token(*token, &byte)) {
    run_ += byte;
    return text;
  }
  flush_run(&text);
  text += with_spaces(*token);
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  utf8_.finish(&text);
  flush_run(&text);
  return text;
}

// A run that is not UTF-8 as a whole becomes one U+FFFD for each of its bytes.
void Detokenizer::flush_run(std::string* text) {
  if (is_utf8(run_)) {
    *text += run_;
  } else {
    for (size_t i = 0; i < run_.size(); ++i) *text += kReplacementCharacter;
  }
  run_.clear();
}

std::string token_as_text(const Tokenizer& tokenizer, int32_t id) {
  if (tokenizer.is_special(id)) return *tokenizer.token_text(id);
  Detokenizer alone(tokenizer);
  std::string text = alone.push(id);
  return text += alone.finish();
}

std::string StopMatcher::push(std::string_view piece) {
  if (matched_) return {};
  if (stops_.empty()) return std::string(piece);
  held_ += piece;
  // The first to be complete; of those that end together, the longest.
  size_t end = std::string::npos;
  size_t begin = 0;
  for (const std::string& stop : stops_) {
    const size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    if (found + stop.size() < end || (found + stop.size() == end && found < begin)) {
      begin = found;
      end = found + stop.size();
    }
  }
  if (end != std::string::npos) {
    matched_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  size_t open = 0;  // the longest end of the text that a stop begins with
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > open; --length) {
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, length))) {
        open = length;
      }
    }
  }
  std::string free = held_.substr(0, held_.size() - open);
  held_.erase(0, free.size());
  return free;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace sapwood
