#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace sapwood {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

// Composing shortens a text: by no more than this factor, as a character of two bytes stands for at
// most three that have two bytes each.
constexpr size_t kMostComposed = 3;

std::string normalize(const TokenizerFile& file, std::string_view text) {
  std::string normalized = file.nfc ? normalize_nfc(text) : std::string(text);
  if (!file.mark_spaces) return normalized;
  std::string marked;
  marked.reserve(normalized.size());
  for (const char byte : normalized) {
    if (byte == ' ') {
      marked += kSpaceMark;
    } else {
      marked += byte;
    }
  }
  return marked;
}

}  // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view definition, const std::string& name) {
  Result<TokenizerFile> file = parse_tokenizer_file(definition, name);
  if (!file.ok()) return file.status();
  return Tokenizer(std::move(file).value());
}

Tokenizer::Tokenizer(TokenizerFile file) : file_(std::move(file)) {
  int32_t ids = file_.vocabulary.size();
  for (const AddedToken& token : file_.added) {
    AddedToken wanted = token;
    if (token.normalized) wanted.content = normalize(file_, token.content);
    (token.normalized ? normalized_ : raw_).add(wanted);
    if (token.special) special_.add(token);
    added_texts_.set(token.id, token.content);
    ids = std::max(ids, token.id + 1);
    most_bytes_ = std::max(most_bytes_, token.content.size());
  }
  is_special_.resize(static_cast<size_t>(ids));
  for (const AddedToken& token : file_.added) {
    is_special_[static_cast<size_t>(token.id)] = token.special;
  }
  for (int32_t id = 0; id < file_.vocabulary.size(); ++id) {
    const std::string* text = file_.vocabulary.text(id);
    if (text != nullptr) most_bytes_ = std::max(most_bytes_, text->size());
  }
  if (file_.nfc) most_bytes_ *= kMostComposed;
  bpe_ = Bpe(file_.vocabulary, file_.bpe, std::move(file_.merges));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool markers) {
  std::vector<int32_t> ids;
  encode_added(text, markers ? Markers::kFound : Markers::kSkipped, &ids);
  return ids;
}

void Tokenizer::encode_between_markers(std::string_view text, std::vector<int32_t>* ids) {
  encode_added(text, Markers::kNone, ids);
}

// Where special tokens are skipped, their texts are passed over whole, as Hugging Face's library
// does: no other token is found inside them.
void Tokenizer::encode_added(std::string_view text, Markers markers, std::vector<int32_t>* ids) {
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    const AddedToken* found = raw_.longest_at_begin(text.substr(at), markers != Markers::kNone);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const size_t end = at + found->content.size();
    if (!found->special || markers == Markers::kFound) {
      encode_text(text.substr(begin, at - begin), markers, ids);
      ids->push_back(found->id);
      begin = end;
    }
    at = end;
  }
  encode_text(text.substr(begin), markers, ids);
}

void Tokenizer::encode_text(std::string_view text, Markers markers, std::vector<int32_t>* ids) {
  if (text.empty()) return;
  if (!file_.nfc && !file_.mark_spaces && normalized_.empty()) {
    encode_normalized(text, markers, ids);
    return;
  }
  const std::string changed = normalize(file_, text);
  const std::string_view whole = changed;
  size_t begin = 0;
  size_t at = 0;
  while (!normalized_.empty() && at < whole.size()) {
    const AddedToken* found =
        normalized_.longest_at_begin(whole.substr(at), markers != Markers::kNone);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const size_t end = at + found->content.size();
    if (!found->special || markers == Markers::kFound) {
      encode_normalized(whole.substr(begin, at - begin), markers, ids);
      ids->push_back(found->id);
      begin = end;
    }
    at = end;
  }
  encode_normalized(whole.substr(begin), markers, ids);
}

void Tokenizer::encode_normalized(std::string_view text, Markers markers,
                                  std::vector<int32_t>* ids) {
  if (text.empty()) return;
  pieces_.assign(1, text);
  for (const SplitRule rule : file_.splits) split(rule, &pieces_);
  for (const std::string_view piece : pieces_) {
    bpe_.encode(file_.vocabulary, piece, markers == Markers::kNone ? &is_special_ : nullptr, ids);
  }
}

const std::string* Tokenizer::token_text(int32_t id) const {
  const std::string* added = added_texts_.text(id);
  return added != nullptr ? added : file_.vocabulary.text(id);
}

}  // namespace sapwood
