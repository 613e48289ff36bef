#include "template/chat_encoder.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/utf8.h"

namespace sapwood {
namespace {

// Private-use characters around a number: what stands for a marker of a person's text while the
// template is rendered, so that a template that trims or splits sees a character there, and no
// marker of its own.
constexpr std::string_view kOpen = "\xf4\x8f\xbf\xbd";   // U+10FFFD
constexpr std::string_view kClose = "\xf4\x8f\xbf\xbc";  // U+10FFFC

class Mask {
 public:
  explicit Mask(const TokenFinder& markers) : markers_(markers) {}

  // The value with every marker in its strings replaced by a stand-in. Stand-ins that a person
  // wrote are replaced too, so that none is mistaken for ours.
  chat::Value masked(const chat::Value& value) {
    if (value.is_string()) return masked_text(value.string());
    if (value.is_list()) {
      chat::List list;
      for (const chat::Value& item : value.list()) list.push_back(masked(item));
      return list;
    }
    if (value.is_dictionary()) {
      chat::Dictionary dictionary;
      for (const auto& [key, item] : value.dictionary()) dictionary.emplace_back(key, masked(item));
      return dictionary;
    }
    return value;
  }

  const std::vector<std::string>& found() const { return found_; }

 private:
  std::string masked_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
      size_t length = 0;
      if (const AddedToken* marker = markers_.longest_at_begin(text); marker != nullptr) {
        length = marker->content.size();
      } else if (text.starts_with(kOpen) || text.starts_with(kClose)) {
        length = kOpen.size();
      }
      if (length == 0) {
        out += text[0];
        text.remove_prefix(1);
        continue;
      }
      out.append(kOpen).append(std::to_string(found_.size())).append(kClose);
      found_.emplace_back(text.substr(0, length));
      text.remove_prefix(length);
    }
    return out;
  }

  const TokenFinder& markers_;
  std::vector<std::string> found_;
};

// The length of a stand-in that the text begins with, and its number; 0 if it begins with none.
size_t stand_in(std::string_view text, size_t* number) {
  if (!text.starts_with(kOpen)) return 0;
  const char* begin = text.data() + kOpen.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), *number);
  if (error != std::errc()) return 0;
  const size_t length = static_cast<size_t>(end - text.data());
  return text.substr(length).starts_with(kClose) ? length + kClose.size() : 0;
}

}  // namespace

ChatEncoder::ChatEncoder(Tokenizer* tokenizer, Options options)
    : tokenizer_(tokenizer), options_(std::move(options)) {}

std::vector<int32_t> ChatEncoder::encode_prompt(std::string_view text) const {
  return with_one_bos(tokenizer_->encode(text, false));
}

Result<std::vector<int32_t>> ChatEncoder::encode_chat(const chat::Value& messages,
                                                      const chat::Dictionary& variables) const {
  if (!options_.chat_template) {
    return Status(Code::kInvalidArgument, options_.name +
                                              ": the bundle has no chat template; give a raw "
                                              "prompt instead of messages");
  }
  Mask mask(tokenizer_->special_tokens());
  const chat::Value masked = mask.masked(messages);
  std::optional<int> eos;
  if (!options_.eos_token_ids.empty()) eos = options_.eos_token_ids[0];
  const Result<std::string> rendered = options_.chat_template->render(
      masked, {text_of(options_.bos_token_id), text_of(eos), variables});
  if (!rendered.ok()) return rendered.status();
  if (mask.found().empty()) return with_one_bos(tokenizer_->encode(rendered.value(), true));
  return with_one_bos(encode_restored(rendered.value(), mask.found()));
}

// The markers of a rendered text are the template's; what lies between them, stand-ins restored, is
// encoded as text.
std::vector<int32_t> ChatEncoder::encode_restored(std::string_view rendered,
                                                  const std::vector<std::string>& found) const {
  std::vector<int32_t> ids;
  std::string between;
  while (!rendered.empty()) {
    size_t number = 0;
    if (const AddedToken* marker = tokenizer_->special_tokens().longest_at_begin(rendered);
        marker != nullptr) {
      tokenizer_->encode_between_markers(std::exchange(between, {}), &ids);
      ids.push_back(marker->id);
      rendered.remove_prefix(marker->content.size());
    } else if (const size_t length = stand_in(rendered, &number);
               length > 0 && number < found.size()) {
      between += found[number];
      rendered.remove_prefix(length);
    } else {
      between += rendered[0];
      rendered.remove_prefix(1);
    }
  }
  tokenizer_->encode_between_markers(between, &ids);
  return ids;
}

std::string ChatEncoder::text_of(std::optional<int> token) const {
  const std::string* text = token ? tokenizer_->token_text(*token) : nullptr;
  return text != nullptr ? *text : std::string();
}

std::vector<int32_t> ChatEncoder::with_one_bos(std::vector<int32_t> ids) const {
  if (!options_.bos_token_id) return ids;
  const int32_t bos = *options_.bos_token_id;
  const auto text = std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id != bos; });
  ids.erase(ids.begin(), text);
  ids.insert(ids.begin(), bos);
  return ids;
}

}  // namespace sapwood
