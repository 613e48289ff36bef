// Chat templates: the part of Jinja that those of Llama, SmolLM2, Qwen and Gemma use, with the
// settings of Hugging Face's apply_chat_template (blocks trimmed, raise_exception, strftime_now,
// tojson that leaves characters alone, loop controls). What it does not know it refuses by name
// and line; what it renders is what Python renders (tests/python/test_text_templates.py).
//
//   Result<ChatTemplate> made = ChatTemplate::parse(source, "chat_template.jinja");
//   Result<std::string> prompt = made->render(messages, {.bos_token = "<bos>"});
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "template/value.h"

namespace sapwood {

class ChatTemplate {
 public:
  // kCorrupt, with the line, for what is not a template of this kind.
  static Result<ChatTemplate> parse(std::string_view source, const std::string& name);

  struct Variables {
    std::string bos_token;
    std::string eos_token;
    chat::Dictionary others;  // any that the template knows: enable_thinking, tools, ...
  };

  // The prompt up to where the answer begins. kInvalidArgument, with the line, where the template
  // refuses the messages.
  Result<std::string> render(const chat::Value& messages, const Variables& variables) const;

 private:
  struct Compiled;

  ChatTemplate(std::shared_ptr<const Compiled> compiled, std::string name)
      : compiled_(std::move(compiled)), name_(std::move(name)) {}

  std::shared_ptr<const Compiled> compiled_;
  std::string name_;
};

}  // namespace sapwood
