#include "draft/draft_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "fake_model.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

// What the model says after the text and the node's path, without any cache.
std::vector<float> expected_after(const FakeModel& model, Text text, const DraftTree& nodes,
                                  int node) {
  std::array<int, DraftTree::kCapacity> path;
  const int depth = node == DraftTree::kRoot ? 0 : nodes.path(node, path);
  for (int i = 0; i < depth; ++i) text.push_back(nodes.token(path[i]));
  return model.logits_after(text);
}

void expect_latest_pass(const DraftCache& cache, const FakeModel& model, const Text& text,
                        bool root) {
  const int first = cache.first_of_pass();
  for (int node = root ? DraftTree::kRoot : first; node < cache.nodes().size();
       node = node == DraftTree::kRoot ? first : node + 1) {
    const std::vector<float> want = expected_after(model, text, cache.nodes(), node);
    ASSERT_TRUE(std::equal(want.begin(), want.end(), cache.logits(node).begin())) << node;
  }
}

TEST(DraftCache, EveryNodeIsToldWhatFollowsItsPathHoweverTextAndTreesGo) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    const int vocabulary = 3 + static_cast<int>(random() % 20);
    const auto model = std::make_shared<FakeModel>(FakeModel::Options{
        .vocabulary = vocabulary, .max_rows = 2 + static_cast<int>(random() % 20)});
    DraftCache cache(model, 1 + static_cast<int>(random() % 12));
    Text text(1 + random() % 40);
    const auto any = [&] { return static_cast<int32_t>(random() % vocabulary); };
    std::generate(text.begin(), text.end(), any);
    ASSERT_TRUE(cache.set_text(text, 400).ok());
    for (int step = 0; step < 60; ++step) {
      if (random() % 16 == 0 || text.size() > 380) {  // another text that begins like this one
        text.resize(1 + random() % text.size());
        for (size_t more = random() % 5; more > 0; --more) text.push_back(any());
        ASSERT_TRUE(cache.set_text(text, 400).ok());
      }
      cache.begin_tree();
      for (int level = 0, levels = static_cast<int>(random() % 5); level < levels; ++level) {
        const int known = cache.nodes().size();
        // Under any node there is, the new ones too.
        for (int tries = level == 0 ? 0 : static_cast<int>(random() % 12); tries > 0; --tries) {
          const int parent = static_cast<int>(random() % (cache.nodes().size() + 1)) - 1;
          cache.add(parent, any());
        }
        if (level > 0 && cache.nodes().size() == known) break;
        const bool root = cache.unread() > 0;
        ASSERT_TRUE(cache.pass().ok());
        ASSERT_EQ(cache.unread(), 0);
        expect_latest_pass(cache, *model, text, root);
      }
      // The target goes some way down the tree, and beyond it.
      Text emitted;
      int node = DraftTree::kRoot;
      while (random() % 4 != 0 && cache.nodes().first_child(node) != DraftTree::kNone) {
        node = cache.nodes().first_child(node);
        if (random() % 2 == 0 && cache.nodes().next_sibling(node) != DraftTree::kNone) {
          node = cache.nodes().next_sibling(node);
        }
        emitted.push_back(cache.nodes().token(node));
      }
      emitted.push_back(any());
      cache.append(emitted);
      text.insert(text.end(), emitted.begin(), emitted.end());
    }
    ASSERT_EQ(model->damaged_slots, 0);
  }
}

TEST(DraftCache, WhatTheTargetAgreedWithIsNotComputedAgain) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.max_rows = 32});
  DraftCache cache(model, 8);
  ASSERT_TRUE(cache.set_text(Text{1, 2, 3, 4}, 100).ok());
  ASSERT_TRUE(cache.pass().ok());
  EXPECT_EQ(model->rows, 4);
  cache.add(cache.add(DraftTree::kRoot, 5), 6);
  ASSERT_TRUE(cache.pass().ok());
  EXPECT_EQ(model->rows, 6);
  cache.append(Text{5, 6, 7});
  EXPECT_EQ(cache.unread(), 1);  // 7, which nobody has looked beyond
  cache.append(Text{8});
  EXPECT_EQ(cache.unread(), 2);
  ASSERT_TRUE(cache.pass().ok());
  EXPECT_EQ(model->rows, 8);
  // A new text keeps what it shares, and reads its last token again.
  ASSERT_TRUE(cache.set_text(Text{1, 2, 3, 4, 5, 6}, 100).ok());
  EXPECT_EQ(cache.unread(), 1);
  ASSERT_TRUE(cache.set_text(Text{1, 2, 9, 4}, 100).ok());
  EXPECT_EQ(cache.unread(), 2);
  // Room for more tokens is a new cache.
  ASSERT_TRUE(cache.set_text(Text{1, 2, 9, 4}, 200).ok());
  EXPECT_EQ(cache.unread(), 4);
}

TEST(DraftCache, ALongPromptComesInChunksWithTheNodesInTheLast) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.max_rows = 7});
  DraftCache cache(model, 4);
  Text text(50);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<int32_t>(i % 40);
  ASSERT_TRUE(cache.set_text(text, 100).ok());
  const int first = cache.add(DraftTree::kRoot, 1);
  cache.add(first, 2);
  cache.add(DraftTree::kRoot, 3);
  ASSERT_TRUE(cache.pass().ok());
  EXPECT_EQ(model->rows, 53);
  EXPECT_EQ(model->passes, 8);
  expect_latest_pass(cache, *model, text, true);
}

TEST(DraftCache, NothingLiesBeyondThePositionsOfTheModel) {
  const auto model =
      std::make_shared<FakeModel>(FakeModel::Options{.max_rows = 8, .context_length = 10});
  DraftCache cache(model, 4);
  EXPECT_LT(cache.depth_left(), 0);  // no text yet
  ASSERT_TRUE(cache.set_text(Text{1, 2, 3, 4, 5, 6, 7, 8}, 100).ok());
  EXPECT_EQ(cache.depth_left(), 2);
  const int first = cache.add(DraftTree::kRoot, 1);
  const int second = cache.add(first, 2);
  EXPECT_NE(second, DraftTree::kNone);
  EXPECT_EQ(cache.add(second, 3), DraftTree::kNone);
  ASSERT_TRUE(cache.pass().ok());
  EXPECT_EQ(model->highest_position, 9);
  cache.append(Text{1, 2});
  EXPECT_EQ(cache.depth_left(), 0);
  ASSERT_TRUE(cache.pass().ok());
  cache.append(Text{3});
  EXPECT_LT(cache.depth_left(), 0);
  EXPECT_EQ(model->damaged_slots, 0);
}

TEST(DraftCache, APassThatFailsLeavesTheTextAsItWas) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.max_rows = 8});
  DraftCache cache(model, 4);
  const Text text = {1, 2, 3};
  ASSERT_TRUE(cache.set_text(text, 100).ok());
  model->fail_pass = 0;
  cache.add(DraftTree::kRoot, 4);
  EXPECT_FALSE(cache.pass().ok());
  EXPECT_EQ(cache.nodes().size(), 0);
  cache.add(DraftTree::kRoot, 5);
  ASSERT_TRUE(cache.pass().ok());
  expect_latest_pass(cache, *model, text, true);
  EXPECT_EQ(model->damaged_slots, 0);
}

}  // namespace
}  // namespace sapwood
