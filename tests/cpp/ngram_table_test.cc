#include "draft/ngram_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "draft/successor_drafter.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
constexpr int kVocabulary = 50;
const std::string kTokenizer(64, 'a');

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

NgramTable table_of(const std::vector<Text>& texts) {
  Result<NgramTable> table = NgramTable::build(texts, kVocabulary, kTokenizer);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return std::move(table).value();
}

TEST(NgramTable, CountsWhatFollowsTokensAndPairsWithinATextOnly) {
  std::mt19937 random(2);
  std::vector<Text> texts(6);
  std::map<Text, std::map<int32_t, int>> counts;
  for (Text& text : texts) {
    text.resize(1 + random() % 300);
    for (int32_t& token : text) token = static_cast<int32_t>(random() % 12);
    for (size_t i = 1; i < text.size(); ++i) {
      ++counts[{text[i - 1]}][text[i]];
      if (i > 1) ++counts[{text[i - 2], text[i - 1]}][text[i]];
    }
  }
  const NgramTable table = table_of(texts);
  size_t expected_records = 0;
  for (const auto& [context, followers] : counts) {
    int seen = 0;
    for (const auto& [token, count] : followers) seen += count;
    if (context.size() == 1 || seen >= 2) ++expected_records;
  }
  EXPECT_EQ(table.records().size(), expected_records);
  for (const NgramTable::Record& record : table.records()) {
    const Text context = record.before == SuccessorTable::kNoToken
                             ? Text{record.token}
                             : Text{record.before, record.token};
    const std::map<int32_t, int>& followers = counts.at(context);
    int seen = 0;
    for (const auto& [token, count] : followers) seen += count;
    EXPECT_EQ(record.top.count, std::min<int>(TopSuccessors::kMost, followers.size()));
    for (int i = 0; i < record.top.count; ++i) {
      EXPECT_FLOAT_EQ(record.top.probability[i],
                      static_cast<float>(followers.at(record.top.tokens[i])) /
                          static_cast<float>(seen + followers.size()));
      EXPECT_LE(record.top.probability[i], record.top.probability[std::max(i - 1, 0)]);
    }
  }
}

TEST(NgramTable, ASavedTableIsReadBackAndTheSameTextGivesTheSameFile) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/a.ngram";
  const std::vector<Text> texts = {{1, 2, 3, 1, 2, 3, 1, 2, 4}, {5, 6}};
  const NgramTable table = table_of(texts);
  ASSERT_TRUE(table.write(path).ok());
  const Result<NgramTable> read = NgramTable::read(path, kVocabulary, kTokenizer);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read.value().records().size(), table.records().size());
  for (size_t i = 0; i < table.records().size(); ++i) {
    const NgramTable::Record& a = table.records()[i];
    const NgramTable::Record& b = read.value().records()[i];
    EXPECT_EQ(a.before, b.before);
    EXPECT_EQ(a.token, b.token);
    ASSERT_EQ(a.top.count, b.top.count);
    for (int s = 0; s < a.top.count; ++s) {
      EXPECT_EQ(a.top.tokens[s], b.top.tokens[s]);
      EXPECT_NEAR(a.top.probability[s], b.top.probability[s], 1e-5);
    }
  }
  const std::string other = folder + "/b.ngram";
  ASSERT_TRUE(table_of(texts).write(other).ok());
  EXPECT_EQ(bytes_of(path), bytes_of(other));
}

TEST(NgramTable, ADamagedFileOrOneOfAnotherTokenizerIsRefused) {
  const std::string folder = temporary_folder();
  const std::string path = folder + "/a.ngram";
  ASSERT_TRUE(table_of({{1, 2, 3, 1, 2, 3}}).write(path).ok());
  EXPECT_EQ(NgramTable::read(path, kVocabulary + 1, kTokenizer).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(NgramTable::read(path, kVocabulary, std::string(64, 'b')).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(NgramTable::read(folder + "/none", kVocabulary, kTokenizer).status().code(),
            Code::kNotFound);
  const std::string whole = bytes_of(path);
  for (size_t cut = 0; cut < whole.size(); cut += 7) {
    write_bytes(path, whole.substr(0, cut));
    EXPECT_FALSE(NgramTable::read(path, kVocabulary, kTokenizer).ok()) << cut;
  }
  for (size_t at = 0; at < whole.size(); at += 5) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    write_bytes(path, changed);
    EXPECT_FALSE(NgramTable::read(path, kVocabulary, kTokenizer).ok()) << at;
  }
}

TEST(NgramTable, NothingToLearnFromIsRefused) {
  EXPECT_FALSE(NgramTable::build({}, kVocabulary, kTokenizer).ok());
  const std::vector<Text> short_text = {{1}, {}};
  EXPECT_FALSE(NgramTable::build(short_text, kVocabulary, kTokenizer).ok());
  const std::vector<Text> outside = {{1, 50}};
  EXPECT_FALSE(NgramTable::build(outside, kVocabulary, kTokenizer).ok());
}

TEST(NgramTable, ADrafterBeginsWithItUntilTheTargetSpeaks) {
  const NgramTable table = table_of({{1, 2, 3, 1, 2, 3, 1, 2, 3}});
  SuccessorDrafter drafter(&table);
  ASSERT_TRUE(drafter.start(Text{9, 1, 2}, 64).ok());
  DraftRequest request;
  request.growth = Growth::kChain;
  request.max_nodes = request.max_depth = 3;
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(request, tree).ok());
  EXPECT_EQ(Text(tree.tokens().begin(), tree.tokens().end()), (Text{3, 1, 2}));

  std::vector<float> logits(kVocabulary, -5.f);
  logits[40] = 5;
  DraftTree none;
  drafter.observe({Text{1, 2}, none, logits, kVocabulary, {}});
  EXPECT_EQ(drafter.table().after_pair(1, 2)->tokens[0], 40);
  EXPECT_FALSE(drafter.table().after_pair(1, 2)->from_text);
  EXPECT_TRUE(drafter.table().after_pair(2, 3)->from_text);

  for (const std::string_view name : {"mix", "successor"}) {
    EXPECT_TRUE(make_drafter(name, {.saved = &table}).ok());
  }
  for (const std::string_view name : {"ngram", "none"}) {
    EXPECT_EQ(make_drafter(name, {.saved = &table}).status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace sapwood
