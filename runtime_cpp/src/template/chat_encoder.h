// A conversation as the ids of a prompt: the chat template's markers become special tokens where
// the template wrote them, and stay ordinary text where a person did.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "template/chat_template.h"
#include "text/tokenizer.h"

namespace sapwood {

class ChatEncoder {
 public:
  struct Options {
    std::optional<int> bos_token_id;  // put before every prompt, once
    std::vector<int> eos_token_ids;
    std::optional<ChatTemplate> chat_template;
    std::string name;  // of the bundle's tokenizer, for messages
  };

  // `tokenizer` must outlive it.
  ChatEncoder(Tokenizer* tokenizer, Options options);

  bool has_template() const { return options_.chat_template.has_value(); }

  // The ids of a raw prompt: markers in it are text.
  std::vector<int32_t> encode_prompt(std::string_view text) const;

  // The ids of a chat up to where the answer begins. `messages`: a list of dictionaries with the
  // keys role and content (and others that the template knows); `variables`: more names for it.
  Result<std::vector<int32_t>> encode_chat(const chat::Value& messages,
                                           const chat::Dictionary& variables) const;

  // A prompt of so many bytes has at least so many ids, whatever it says.
  size_t least_ids(size_t bytes) const { return tokenizer_->least_ids(bytes); }

 private:
  std::string text_of(std::optional<int> token) const;
  std::vector<int32_t> with_one_bos(std::vector<int32_t> ids) const;
  std::vector<int32_t> encode_restored(std::string_view rendered,
                                       const std::vector<std::string>& found) const;

  Tokenizer* tokenizer_;
  Options options_;
};

}  // namespace sapwood
