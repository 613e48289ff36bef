// Tokens of a text beside a draft's own: what they are computed with, and how they take turns.
#include "model/text_vocabulary.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernel_fixtures.h"
#include "kernels/kernels.h"
#include "kernels/packed_rows.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "measure/allocation_counter.h"
#include "model/draft_head.h"
#include "model/parallel_heads.h"

namespace sapwood {
namespace {

using testing::PackedMatrix;
using testing::random_floats;

std::vector<float> products(const LinearWeights& weights, const std::vector<float>& x) {
  const testing::Activations row(testing::scalar(), x, 1, weights.inputs);
  std::vector<float> y(static_cast<size_t>(weights.outputs));
  testing::scalar().linear(weights, row.rows, 1, 0, weights.panels(), false, y.data(),
                           weights.outputs);
  return y;
}

TEST(PackedRows, ACopiedRowIsTheSameAndGivesTheSameProductsInEveryFormatAndPlace) {
  const std::array<std::pair<int, int>, 4> moves = {{{0, 39}, {49, 0}, {17, 17}, {5, 20}}};
  for (const char* name : {"int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32"}) {
    testing::Random random(3);
    const LinearFormat format = parse_linear_format(name).value();
    const PackedMatrix from(random, format, 50, 256);
    PackedMatrix to(random, format, 40, 256);
    const std::vector<float> x = random_floats(random, 256);
    const std::vector<float> before = products(to.weights, x);
    for (const auto& [row, place] : moves) {
      EXPECT_FALSE(same_packed_row(from.weights, row, to.weights, place)) << name;
      copy_packed_row(from.weights, row, to.weights, to.bytes.data(), place);
      EXPECT_TRUE(same_packed_row(from.weights, row, to.weights, place)) << name;
    }
    std::vector<float> expected = before;
    const std::vector<float> given = products(from.weights, x);
    for (const auto& [row, place] : moves) expected[place] = given[row];
    EXPECT_EQ(products(to.weights, x), expected) << name;
  }
  const LinearWeights four{nullptr, 16, 32, parse_linear_format("int4_g32").value()};
  const LinearWeights eight{nullptr, 16, 32, parse_linear_format("int8_g32").value()};
  EXPECT_FALSE(same_packed_row(four, 0, eight, 0));
}

struct Vocabulary {
  explicit Vocabulary(int places)
      : random(1),
        head(random, LinearFormat{8, 32, false}, 100, 64),
        own(30),
        vocabulary((std::iota(own.begin(), own.end(), 20), own), head.weights, places) {}

  testing::Random random;
  PackedMatrix head;
  std::vector<int32_t> own;  // 20 .. 49
  TextVocabulary vocabulary;
};

TEST(TextVocabulary, GivesEveryTokenOfTheTextThatTheDraftLacksOneEntryWithTheTargetsRow) {
  Vocabulary made(8);
  TextVocabulary& vocabulary = made.vocabulary;
  EXPECT_EQ(vocabulary.size(), 38);
  EXPECT_EQ(vocabulary.entry_of(3), TextVocabulary::kNone);
  const std::vector<int32_t> text = {3, 20, 99, 3, 49, 0};
  vocabulary.begin(text);
  EXPECT_EQ(vocabulary.entry_of(20), 0);
  EXPECT_EQ(vocabulary.entry_of(49), 29);
  EXPECT_EQ(vocabulary.rows().outputs, 3);
  for (const auto& [token, entry] : {std::pair{3, 30}, {99, 31}, {0, 32}}) {
    EXPECT_EQ(vocabulary.entry_of(token), entry);
    EXPECT_EQ(vocabulary.tokens()[static_cast<size_t>(entry)], token);
    EXPECT_TRUE(same_packed_row(made.head.weights, token, vocabulary.rows(), entry - 30));
  }
  EXPECT_EQ(vocabulary.tokens()[33], TextVocabulary::kNone);
  std::vector<float> logits(38, 1.f);
  vocabulary.fill_untaken(logits);
  for (int entry = 0; entry < 38; ++entry) EXPECT_EQ(logits[entry] == 1.f, entry < 33) << entry;
}

TEST(TextVocabulary, TheOldestMakesRoomAndAnotherTextBeginsWithNone) {
  Vocabulary made(4);
  TextVocabulary& vocabulary = made.vocabulary;
  vocabulary.begin(std::vector<int32_t>{1, 2, 3, 4});
  vocabulary.add(std::vector<int32_t>{2, 5});
  EXPECT_EQ(vocabulary.entry_of(1), TextVocabulary::kNone);
  EXPECT_EQ(vocabulary.entry_of(5), 30);
  EXPECT_EQ(vocabulary.rows().outputs, 4);
  EXPECT_TRUE(same_packed_row(made.head.weights, 5, vocabulary.rows(), 0));
  vocabulary.begin({});
  EXPECT_EQ(vocabulary.rows().outputs, 0);
  for (int token = 0; token < 20; ++token) {
    EXPECT_EQ(vocabulary.entry_of(token), TextVocabulary::kNone) << token;
  }
}

TEST(TextVocabulary, AnyTextKeepsTokensEntriesAndRowsInStep) {
  Vocabulary made(7);
  TextVocabulary& vocabulary = made.vocabulary;
  std::vector<int32_t> text(11);
  for (int round = 0; round < 200; ++round) {
    for (int32_t& token : text) token = static_cast<int32_t>(made.random() % 100);
    if (round % 20 == 0) {
      vocabulary.begin(text);
    } else {
      vocabulary.add(text);
    }
    int taken = 0;
    for (int entry = 0; entry < vocabulary.size(); ++entry) {
      const int32_t token = vocabulary.tokens()[static_cast<size_t>(entry)];
      if (token == TextVocabulary::kNone) continue;
      EXPECT_EQ(vocabulary.entry_of(token), entry);
      if (entry < 30) continue;
      ++taken;
      EXPECT_TRUE(same_packed_row(made.head.weights, token, vocabulary.rows(), entry - 30));
    }
    EXPECT_EQ(taken, vocabulary.rows().outputs);
    EXPECT_GE(vocabulary.entry_of(text.back()), 0) << "the latest token has an entry";
  }
}

TEST(TextVocabulary, AFullOneTakesTokensWithoutAllocating) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  Vocabulary made(4);
  const std::vector<int32_t> text = {1, 2, 3, 4, 5, 6};
  const uint64_t before = allocations();
  made.vocabulary.begin(text);
  made.vocabulary.add(text);
  EXPECT_EQ(allocations(), before);
}

std::pair<std::shared_ptr<const DraftFolder>, std::shared_ptr<const Bundle>> pair_of(
    const TestDraftOptions& options) {
  const std::string target = write_test_bundle(test_bundle_options("llama")).value();
  const std::string draft = write_test_draft(target, options).value();
  return {std::make_shared<const DraftFolder>(DraftFolder::open(draft).value()),
          std::make_shared<const Bundle>(Bundle::open(target).value())};
}

TEST(DraftHead, ATokenOfTheTextHasTheLogitThatTheTargetsHeadGivesIt) {
  const auto [draft, target] = pair_of({.head_of_target = true});
  const auto head = DraftHead::open(draft, target, {.threads = 2}).value();
  TextVocabulary vocabulary = head->make_vocabulary();
  ASSERT_EQ(vocabulary.size(), 160);  // 90, and all others may come
  std::vector<int32_t> missing;
  for (int32_t token = 0; missing.size() < 20; ++token) {
    if (vocabulary.entry_of(token) == TextVocabulary::kNone) missing.push_back(token);
  }
  vocabulary.begin(missing);
  const std::vector<int32_t> token = {42}, zero = {0}, one = {1};
  testing::Random random(5);
  const auto features = random_floats(random, static_cast<size_t>(head->manifest().feature_size()));
  const auto kv = head->make_kv(16).value();
  std::vector<float> logits(160);
  ASSERT_TRUE(head->forward({token, zero, zero, {}, zero, zero, one, zero}, features, {},
                            vocabulary, *kv, logits)
                  .ok());
  const int hidden = head->spec().hidden_size;
  std::vector<float> normed(static_cast<size_t>(hidden));
  kernels().rms_norm(head->states().data(), hidden, draft->tensors().values("output_norm").data(),
                     head->spec().norm_epsilon, 1, hidden, normed.data(), hidden);
  const std::vector<float> expected = products(target->head(), normed);
  for (int entry = 0; entry < 160; ++entry) {
    const int32_t of = vocabulary.tokens()[static_cast<size_t>(entry)];
    EXPECT_EQ(of == TextVocabulary::kNone, entry >= 110);
    if (of != TextVocabulary::kNone) {
      EXPECT_EQ(logits[static_cast<size_t>(entry)], expected[static_cast<size_t>(of)]) << entry;
    } else {
      EXPECT_LT(logits[static_cast<size_t>(entry)], -1e29f) << entry;
    }
  }
}

TEST(DraftHead, AHeadOfItsOwnIsNotExtended) {
  for (const DraftKind kind : {DraftKind::kHead, DraftKind::kParallelHeads}) {
    for (const bool of_target : {false, true}) {
      const auto [draft, target] = pair_of({.kind = kind, .head_of_target = of_target});
      const int size =
          kind == DraftKind::kHead
              ? DraftHead::open(draft, target, {.threads = 1}).value()->make_vocabulary().size()
              : ParallelHeads::open(draft, target, {.threads = 1})
                    .value()
                    ->make_vocabulary()
                    .size();
      EXPECT_EQ(size, of_target ? 160 : 90);
    }
  }
}

}  // namespace
}  // namespace sapwood
