#include "template/chat_template.h"

#include <utility>
#include <variant>

#include "base/json.h"
#include "template/builtins.h"
#include "template/scope.h"
#include "template/statement_parser.h"

namespace sapwood {

struct ChatTemplate::Compiled {
  chat::Block block;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& name) {
  try {
    auto compiled = std::make_shared<Compiled>();
    compiled->block = chat::StatementParser(source).parse();
    return ChatTemplate(std::move(compiled), name);
  } catch (const chat::TemplateError& error) {
    return Status(Code::kCorrupt, name + ", line " + std::to_string(error.line) + ": " +
                                      printable(error.message) + "; correct the template");
  }
}

Result<std::string> ChatTemplate::render(const chat::Value& messages,
                                         const Variables& variables) const {
  chat::Globals globals;
  chat::Dictionary& given = globals.given;
  given = chat::global_functions();
  given.emplace_back("messages", messages);
  given.emplace_back("bos_token", variables.bos_token);
  given.emplace_back("eos_token", variables.eos_token);
  given.emplace_back("add_generation_prompt", true);
  given.emplace_back("tools", nullptr);
  given.emplace_back("documents", nullptr);
  for (const auto& [name, value] : variables.others) given.emplace_back(name, value);
  chat::Scope scope(&globals);
  const auto failed = [&](const std::string& message, int line) {
    return Status(Code::kInvalidArgument, name_ + ", line " + std::to_string(line) + ": " +
                                              printable(message) +
                                              "; change the messages or the template");
  };
  try {
    std::string text;
    chat::run_block(compiled_->block, scope, &text);
    return text;
  } catch (const chat::TemplateError& error) {
    return failed(error.message, error.line > 0 ? error.line : scope.line);
  } catch (const std::bad_variant_access&) {
    return failed("an argument is of the wrong type", scope.line);
  }
}

}  // namespace sapwood
