// Chat templates in C++ alone; tests/python/test_text_templates.py compares them with Jinja.
#include "template/chat_template.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "template/lexer.h"

namespace sapwood {
namespace {

using chat::Dictionary;
using chat::List;
using chat::Value;

Value message(const char* role, const char* content) {
  return Dictionary{{"role", role}, {"content", content}};
}

Value conversation() {
  return List{message("system", "Be kind."), message("user", " Hi \n"),
              message("assistant", "Yes")};
}

std::string rendered(std::string_view source, const Dictionary& others = {}) {
  const Result<ChatTemplate> made = ChatTemplate::parse(source, "t");
  if (!made.ok()) return made.status().message();
  const Result<std::string> text = made.value().render(conversation(), {"<bos>", "<eos>", others});
  return text.ok() ? text.value() : text.status().message();
}

TEST(ChatTemplate, AConversationInChatMlIsWrittenTurnByTurn) {
  EXPECT_EQ(rendered("{{ bos_token }}{% for m in messages %}\n"
                     "    {% if m.role != 'system' %}\n"
                     "<|im_start|>{{ m['role'] }}\n{{ m.content | trim }}<|im_end|>\n"
                     "    {% endif %}\n"
                     "{% endfor %}\n"
                     "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"),
            "<bos><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYes<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatTemplate, ExpressionsMeanWhatTheyMeanInPython) {
  const std::vector<std::pair<const char*, const char*>> expected = {
      {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 5 }}", "3 -4 2 32"},
      {"{{ 1 < 2 < 3 }} {{ not 1 in [2] }} {{ 'b' in 'abc' }}", "True True True"},
      {"{{ 'h\xc3\xa9llo'[1:3] }} {{ [1, 2, 3][::-1] | join('-') }}", "\xc3\xa9l 3-2-1"},
      {"{{ missing }}|{{ missing | default('d') }}|{{ missing is defined }}", "|d|False"},
      {"{{ {'a': [1, none]} | tojson }}", "{\"a\": [1, null]}"},
      {"{% set ns = namespace(x=0) %}{% for m in messages %}{% set ns.x = ns.x + 1 %}{% endfor %}"
       "{{ ns.x }}",
       "3"},
      {"{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}"
       "{% endif %}{{ i }}{% endfor %}",
       "02"},
      {"{{ tools is none }}{{ strftime_now is defined }}", "TrueTrue"}};
  for (const auto& [source, text] : expected) EXPECT_EQ(rendered(source), text) << source;
}

TEST(ChatTemplate, WhatItIsGivenHidesItsOwnNames) {
  EXPECT_EQ(rendered("{{ tools | length }}{{ enable_thinking }}",
                     {{"tools", List{Value("f")}}, {"enable_thinking", false}}),
            "1False");
}

TEST(ChatTemplate, ARefusalNamesTheLine) {
  EXPECT_NE(rendered("a\n{% for %}").find("t, line 2: "), std::string::npos);
  const std::string refused = rendered("a\n\n{{ raise_exception('roles') }}");
  EXPECT_NE(refused.find("t, line 3: "), std::string::npos) << refused;
  EXPECT_NE(refused.find("roles"), std::string::npos) << refused;
  EXPECT_NE(rendered("{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}").find("t, line "),
            std::string::npos);
  EXPECT_NE(rendered("{{ 9223372036854775807 + 1 }}").find("t, line 1: "), std::string::npos);
}

// Whatever it is given, it renders or refuses: the sanitizers watch the rest.
TEST(ChatTemplate, RandomSequencesOfItsWordsNeitherCrashNorHang) {
  const std::vector<std::string> words = {
      "{% ",    " %}", "{{ ",  " }}",        "{#",       "#}",        "for m in messages",
      "endfor", "if",  "else", "endif",      "set x = ", "m.content", "x",
      "(",      ")",   "[",    "]",          "|",        "trim",      "'a'",
      "1",      "-",   "+",    "//",         "0",        "\n",        ",",
      "not",    "in",  ".",    "macro m(a)", "endmacro", "m(1)",      ":",
      "{",      "}",   "~",    "is string"};
  std::mt19937 random(1);
  int made = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string source;
    for (int left = static_cast<int>(random() % 12); left > 0; --left) {
      source += words[random() % words.size()];
    }
    const Result<ChatTemplate> parsed = ChatTemplate::parse(source, "t");
    if (!parsed.ok()) {
      ASSERT_NE(parsed.status().message().find("line "), std::string::npos) << source;
      continue;
    }
    ++made;
    (void)parsed.value().render(conversation(), {"<bos>", "<eos>", {}});
  }
  EXPECT_GT(made, 100);
}

TEST(TokenizeTemplate, WhiteSpaceAroundTagsGoesAsJinjaLetsItGo) {
  const auto text_of = [](std::string_view source) {
    std::string text;
    for (const chat::Token& token : chat::tokenize_template(source)) {
      if (token.kind == chat::Token::kText) text += "[" + token.text + "]";
    }
    return text;
  };
  EXPECT_EQ(text_of("a\n  {% if x %}\n b"), "[a\n][ b]");
  EXPECT_EQ(text_of("a \n {%- if x -%} \n b"), "[a][b]");
  EXPECT_EQ(text_of("a\n  {%+ if x %}b"), "[a\n  ][b]");
  EXPECT_EQ(text_of("a {{ x }}\nb {{- x -}} c"), "[a ][\nb][c]");
  EXPECT_EQ(text_of("a {# no #} b"), "[a ][ b]");
}

}  // namespace
}  // namespace sapwood
