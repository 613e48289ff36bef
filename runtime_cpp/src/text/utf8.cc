#include "text/utf8.h"

namespace sapwood {
namespace {

struct Scan {
  int bytes = 0;         // of the whole character, or of the longest beginning of one
  bool whole = false;    // a character
  bool waiting = false;  // cut off by the end of the text; more bytes could complete it
};

// The first character of a text that is not empty; bytes is at least 1.
Scan scan(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  int length = 0;
  uint8_t low = 0x80;  // what the second byte may be: it rules out overlong forms and surrogates
  uint8_t high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return {1, false, false};
  }
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return {i, false, true};
    const uint8_t next = byte(static_cast<size_t>(i));
    if (next < low || next > high) return {i, false, false};
    low = 0x80;
    high = 0xbf;
  }
  return {length, true, false};
}

}  // namespace

Utf8Character utf8_first(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {((lead & 0x1f) << 6) | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) {
    return {((lead & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f), 3};
  }
  return {
      ((lead & 0x07) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) | (byte(3) & 0x3f),
      4};
}

size_t utf8_valid_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Scan found = scan(text.substr(at));
    if (!found.whole) return at;
    at += static_cast<size_t>(found.bytes);
  }
  return at;
}

void append_utf8(char32_t character, std::string* out) {
  const auto put = [&](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | (character >> 6));
    put(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    put(0xe0 | (character >> 12));
    put(0x80 | ((character >> 6) & 0x3f));
    put(0x80 | (character & 0x3f));
  } else {
    put(0xf0 | (character >> 18));
    put(0x80 | ((character >> 12) & 0x3f));
    put(0x80 | ((character >> 6) & 0x3f));
    put(0x80 | (character & 0x3f));
  }
}

std::u32string utf8_decode(std::string_view valid) {
  std::u32string decoded;
  decoded.reserve(valid.size());
  while (!valid.empty()) {
    const Utf8Character first = utf8_first(valid);
    decoded.push_back(first.value);
    valid.remove_prefix(static_cast<size_t>(first.bytes));
  }
  return decoded;
}

std::string utf8_encode(std::u32string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char32_t character : text) append_utf8(character, &encoded);
  return encoded;
}

void Utf8Stream::push(std::string_view bytes, std::string* out) {
  kept_ += bytes;
  std::string_view rest = kept_;
  while (!rest.empty()) {
    const Scan found = scan(rest);
    if (found.waiting) break;
    if (found.whole) {
      out->append(rest.substr(0, static_cast<size_t>(found.bytes)));
    } else {
      out->append(kReplacementCharacter);
    }
    rest.remove_prefix(static_cast<size_t>(found.bytes));
  }
  kept_.erase(0, kept_.size() - rest.size());
}

void Utf8Stream::finish(std::string* out) {
  if (!kept_.empty()) out->append(kReplacementCharacter);
  kept_.clear();
}

}  // namespace sapwood
