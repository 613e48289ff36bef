// The engine's own tokenizer and chat templates, for the tests that hold them against Hugging
// Face's libraries.

#include "bindings.h"
#include "template/chat_encoder.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace sapwood::python {
namespace {

using Ids = std::vector<int32_t>;

chat::Value value_of(const std::string& json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
  if (parsed.is_discarded()) raise_invalid("not JSON");
  return chat::Value::of(parsed);
}

ChatTemplate template_or_raise(const std::string& source) {
  return value_or_raise(ChatTemplate::parse(source, "chat_template.jinja"));
}

std::string render(const std::string& source, const std::string& messages,
                   const std::string& bos_token, const std::string& eos_token,
                   const std::string& variables) {
  return value_or_raise(template_or_raise(source).render(
      value_of(messages), {bos_token, eos_token, value_of(variables).dictionary()}));
}

Ids encode_chat(Tokenizer& tokenizer, const std::string& messages, const std::string& source,
                std::optional<int> bos, const std::vector<int>& eos) {
  const ChatEncoder encoder(&tokenizer, {bos, eos, template_or_raise(source), "tokenizer.json"});
  return value_or_raise(encoder.encode_chat(value_of(messages), {}));
}

}  // namespace

void bind_text(nb::module_& module) {
  nb::class_<Tokenizer>(module, "TextTokenizer",
                        "The engine's tokenizer: the ids of Hugging Face's, without Python.")
      .def(
          "__init__",
          [](Tokenizer* self, std::string_view definition, const std::string& name) {
            new (self) Tokenizer(value_or_raise(Tokenizer::parse(definition, name)));
          },
          nb::arg("definition"), nb::arg("name") = "tokenizer.json")
      .def("encode", &Tokenizer::encode, nb::arg("text"), nb::arg("markers") = false)
      .def("least_ids", &Tokenizer::least_ids, nb::arg("bytes"),
           "A text of so many bytes has at least so many ids.")
      .def("encode_chat", &encode_chat, nb::arg("messages"), nb::arg("template"),
           nb::arg("bos") = nb::none(), nb::arg("eos") = std::vector<int>(),
           "The ids of a chat; messages are JSON.");
  nb::class_<Detokenizer>(module, "TextDetokenizer", "Ids to text, piece by piece.")
      .def(nb::init<const Tokenizer&>(), nb::arg("tokenizer"), nb::keep_alive<1, 2>())
      .def("push", &Detokenizer::push, nb::arg("token"))
      .def("finish", &Detokenizer::finish);
  nb::class_<StopMatcher>(module, "TextStopMatcher", "Finds the stop text that is complete first.")
      .def(nb::init<std::vector<std::string>>(), nb::arg("stops"))
      .def("push", &StopMatcher::push, nb::arg("piece"))
      .def("finish", &StopMatcher::finish)
      .def_prop_ro("matched", &StopMatcher::matched);
  module.def("render_chat_template", &render, nb::arg("source"), nb::arg("messages"),
             nb::arg("bos_token") = "", nb::arg("eos_token") = "", nb::arg("variables") = "{}",
             "A chat template rendered by the engine; messages and variables are JSON.");
}

}  // namespace sapwood::python
