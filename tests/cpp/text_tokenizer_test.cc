// The tokenizer's parts against their definitions; tests/python/test_text_tokenizer.py compares the
// whole with Hugging Face's library.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "text/bpe.h"
#include "text/detokenizer.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sapwood {
namespace {

constexpr int32_t kMarker = 1000;  // "<|end|>"

// Byte-level, with 256 bytes (their ids are their values) and these merges, best first.
Tokenizer byte_tokenizer(const std::vector<std::pair<std::string, std::string>>& merges) {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string written;
    append_utf8(byte_alphabet()[static_cast<size_t>(byte)], &written);
    vocabulary[written] = byte;
  }
  nlohmann::json pairs = nlohmann::json::array();
  int next = 256;
  for (const auto& [left, right] : merges) {
    vocabulary[left + right] = next++;
    pairs.push_back(left + " " + right);
  }
  const nlohmann::json definition = {
      {"added_tokens",
       {{{"id", kMarker}, {"content", "<|end|>"}, {"special", true}, {"normalized", false}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", pairs}}}};
  return Tokenizer::parse(definition.dump(), "tokenizer.json").value();
}

std::string random_text(std::mt19937& random, int most_characters) {
  static const std::vector<std::string> parts = {
      "a",  "b",       "ab",    " ",        "  ",           "\n",
      "'s", "1",       "23",    "\xc3\xa9", "\xe6\xa3\xae", "\xf0\x9f\x8c\xb3",
      ".",  "<|end|>", "<|end", "Z"};
  std::string text;
  for (int left = static_cast<int>(random() % (most_characters + 1)); left > 0; --left) {
    text += parts[random() % parts.size()];
  }
  return text;
}

std::string decoded(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer stream(tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(is_utf8(piece)) << "a piece ends inside a character";
    text += piece;
  }
  return text + stream.finish();
}

TEST(Utf8, EveryCharacterIsReadAsItWasWritten) {
  for (char32_t character = 0; character <= 0x10ffff; ++character) {
    if (character >= 0xd800 && character < 0xe000) continue;
    std::string text;
    append_utf8(character, &text);
    const Utf8Character read = utf8_first(text);
    ASSERT_EQ(read.value, character);
    ASSERT_EQ(static_cast<size_t>(read.bytes), text.size());
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(utf8_valid_prefix(text.substr(0, text.size() - 1)), 0u);
  }
}

TEST(Utf8, WhatTheStandardForbidsIsNotValid) {
  for (const std::string_view wrong :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(utf8_valid_prefix("a" + std::string(wrong)), 1u);
  }
}

TEST(Utf8Stream, ItGivesTheSameTextHoweverTheBytesAreCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) {
      static const unsigned char some[] = {'a',  0x80, 0xbf, 0xc3, 0xe6,
                                           0xa3, 0xed, 0xf0, 0x9f, 0xff};
      byte = static_cast<char>(some[random() % std::size(some)]);
    }
    const auto through = [&](size_t most) {
      Utf8Stream stream;
      std::string text;
      for (size_t begin = 0; begin < bytes.size();) {
        const size_t length = std::min(bytes.size() - begin, 1 + random() % most);
        stream.push(std::string_view(bytes).substr(begin, length), &text);
        EXPECT_TRUE(is_utf8(text));
        begin += length;
      }
      stream.finish(&text);
      return text;
    };
    const std::string whole = through(bytes.size() + 1);
    ASSERT_EQ(through(1), whole);
    ASSERT_EQ(through(3), whole);
    if (is_utf8(bytes)) {
      ASSERT_EQ(whole, bytes);
    }
  }
}

TEST(Split, ThePiecesAreTheTextInEveryRule) {
  std::mt19937 random(2);
  for (const SplitRule rule :
       {SplitRule::kGpt2, SplitRule::kLlama3, SplitRule::kQwen2, SplitRule::kEachDigit,
        SplitRule::kDigitRuns, SplitRule::kAfterSpaces}) {
    for (int round = 0; round < 300; ++round) {
      const std::string text = "x" + random_text(random, 12);
      std::vector<std::string_view> pieces = {text};
      split(rule, &pieces);
      std::string joined;
      for (const std::string_view piece : pieces) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(Split, ASpaceGoesWithTheWordBehindItAndNumbersAreCutAsTheRuleSays) {
  const auto pieces_of = [](SplitRule rule, std::string_view text) {
    std::vector<std::string_view> pieces = {text};
    split(rule, &pieces);
    return std::vector<std::string>(pieces.begin(), pieces.end());
  };
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces_of(SplitRule::kGpt2, "I'll  go 1234!"),
            (Pieces{"I", "'ll", " ", " go", " 1234", "!"}));
  EXPECT_EQ(pieces_of(SplitRule::kLlama3, "I'LL go 1234!\n\nx"),
            (Pieces{"I", "'LL", " go", " ", "123", "4", "!\n\n", "x"}));
  EXPECT_EQ(pieces_of(SplitRule::kQwen2, "a 12"), (Pieces{"a", " ", "1", "2"}));
  EXPECT_EQ(pieces_of(SplitRule::kEachDigit, "ab12"), (Pieces{"ab", "1", "2"}));
  EXPECT_EQ(pieces_of(SplitRule::kDigitRuns, "ab12c"), (Pieces{"ab", "12", "c"}));
  EXPECT_EQ(pieces_of(SplitRule::kAfterSpaces, "a b "), (Pieces{"a ", "b "}));
}

// Sennrich, Haddow and Birch's algorithm as it is defined: the best pair of all, again and again.
std::vector<int32_t> merged_by_definition(
    std::vector<int32_t> ids, const std::map<std::pair<int32_t, int32_t>, int32_t>& rank_of) {
  for (;;) {
    size_t best = ids.size();
    int32_t rank = INT32_MAX;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rank_of.find({ids[i], ids[i + 1]});
      if (found != rank_of.end() && found->second < rank) {
        rank = found->second;
        best = i;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = 256 + rank;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, TheHeapMergesWhatTheDefinitionMerges) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> texts = {"a", "b", "c"};
    std::map<std::string, int32_t> id_of = {{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
    std::vector<std::pair<std::string, std::string>> merges;
    std::map<std::pair<int32_t, int32_t>, int32_t> rank_of;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::string left = texts[random() % texts.size()];
      const std::string right = texts[random() % texts.size()];
      if (id_of.count(left + right) > 0)
        continue;  // one way to make a token, so its rank is its id
      rank_of[{id_of[left], id_of[right]}] = static_cast<int32_t>(merges.size());
      id_of[left + right] = 256 + static_cast<int32_t>(merges.size());
      merges.emplace_back(left, right);
      texts.push_back(left + right);
    }
    Tokenizer tokenizer = byte_tokenizer(merges);
    for (int text = 0; text < 20; ++text) {
      std::string piece(1 + random() % 24, 'a');
      for (char& letter : piece) letter = static_cast<char>('a' + random() % 3);
      const std::vector<int32_t> bytes(piece.begin(), piece.end());
      ASSERT_EQ(tokenizer.encode(piece, false), merged_by_definition(bytes, rank_of)) << piece;
    }
  }
}

TEST(Tokenizer, TextComesBackFromItsIdsAndMarkersAreTextUnlessTheyAreAskedFor) {
  Tokenizer tokenizer = byte_tokenizer({{"a", "b"},
                                        {"\xc4\xa0", "a"},
                                        {"\xc4\xa0"
                                         "a",
                                         "b"}});
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(random, 12);
    const std::vector<int32_t> plain = tokenizer.encode(text, false);
    ASSERT_EQ(std::count(plain.begin(), plain.end(), kMarker), 0) << text;
    ASSERT_EQ(decoded(tokenizer, plain), text);
    ASSERT_GE(plain.size(), tokenizer.least_ids(text.size()));
    std::string without = text;
    std::ptrdiff_t markers = 0;
    for (size_t at; (at = without.find("<|end|>")) != std::string::npos; ++markers) {
      without.replace(at, 7, "\x01");  // not by nothing: its neighbours make no new marker
    }
    without.erase(std::remove(without.begin(), without.end(), '\x01'), without.end());
    const std::vector<int32_t> marked = tokenizer.encode(text, true);
    ASSERT_EQ(std::count(marked.begin(), marked.end(), kMarker), markers) << text;
    ASSERT_EQ(decoded(tokenizer, marked), without);
  }
}

TEST(Tokenizer, AMergeOfTokensThatAreNotThereIsNamed) {
  const Result<Tokenizer> made = Tokenizer::parse(
      R"({"decoder": {"type": "ByteLevel"},
          "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
          "model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})",
      "here.json");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kCorrupt);
  EXPECT_NE(made.status().message().find("here.json: "), std::string::npos);
  EXPECT_NE(made.status().message().find("pair 0"), std::string::npos);
}

TEST(StopMatcher, WhatIsGivenIsTheTextBeforeTheStopThatIsCompleteFirst) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const auto letters = [&](int least, int most) {
      std::string text(least + random() % (most - least + 1), 'a');
      for (char& letter : text) letter = random() % 2 == 0 ? 'a' : 'b';
      return text;
    };
    const std::string text = letters(0, 12);
    const std::vector<std::string> stops = {letters(1, 4), letters(1, 4)};
    size_t end = std::string::npos;  // of the stop that is complete first; the longer among equals
    size_t begin = text.size();
    for (const std::string& stop : stops) {
      const size_t at = text.find(stop);
      if (at == std::string::npos) continue;
      if (at + stop.size() < end || (at + stop.size() == end && at < begin)) {
        end = at + stop.size();
        begin = at;
      }
    }
    StopMatcher matcher(stops);
    std::string given;
    for (const char letter : text) given += matcher.push(std::string_view(&letter, 1));
    EXPECT_EQ(matcher.matched(), end != std::string::npos);
    given += matcher.finish();
    ASSERT_EQ(given, text.substr(0, begin)) << text << " " << stops[0] << " " << stops[1];
  }
}

}  // namespace
}  // namespace sapwood
