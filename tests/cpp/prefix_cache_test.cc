#include "memory/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "measure/allocation_counter.h"

namespace sapwood {
namespace {

using Tokens = std::vector<int32_t>;

std::shared_ptr<PrefixCache> cache_of(int slots) {
  return std::make_shared<PrefixCache>(KvStore::create(1, 1, 16, slots).value());
}

// A text as a session would hold it. What was computed into a slot is written down: the whole
// prefix that the token's K and V depend on.
struct Written {
  std::map<int32_t, Tokens> in_slot;
};

struct Text {
  Text(std::shared_ptr<PrefixCache> the_cache, Written& the_written)
      : cache(std::move(the_cache)), written(the_written), slots(cache, 512) {}

  // How many tokens were there already; -1: no room.
  int read(const Tokens& text) {
    tokens = text;
    const int known = slots.begin(text);
    if (!go_on(static_cast<int>(text.size()) - known)) return -1;
    slots.share(tokens);
    return known;
  }
  bool go_on(int count) {
    std::vector<int32_t> more(static_cast<size_t>(count));
    if (!cache->allocate(more)) return false;
    for (const int32_t slot : more) {
      const size_t at = static_cast<size_t>(slots.size());
      written.in_slot[slot] = Tokens(tokens.begin(), tokens.begin() + static_cast<long>(at) + 1);
      slots.append(std::span(&slot, 1));
    }
    return true;
  }
  void expect_right() const {
    for (int i = 0; i < slots.size(); ++i) {
      const int32_t slot = slots.slots()[static_cast<size_t>(i)];
      ASSERT_TRUE(cache->is_taken(slot));
      ASSERT_EQ(written.in_slot.at(slot), Tokens(tokens.begin(), tokens.begin() + i + 1));
    }
  }

  std::shared_ptr<PrefixCache> cache;
  Written& written;
  Tokens tokens;
  PrefixSlots slots;
};

TEST(PrefixCache, ATextThatBeginsLikeAnEarlierOneHasItsSlots) {
  Written written;
  const auto cache = cache_of(64);
  Text first(cache, written), second(cache, written);
  EXPECT_EQ(first.read({1, 2, 3, 4}), 0);
  EXPECT_EQ(second.read({1, 2, 3, 5}), 3);  // while the first goes on living
  EXPECT_TRUE(std::equal(second.slots.slots().begin(), second.slots.slots().begin() + 3,
                         first.slots.slots().begin()));
  EXPECT_EQ(cache->taken(), 5);
  EXPECT_EQ(first.read({9}), 0);
  EXPECT_EQ(first.read({1, 2, 3, 4, 6}), 4);  // and after it has gone
  EXPECT_EQ(cache->taken(), 7);
  cache->forget();
  EXPECT_EQ(cache->taken(), 6);  // 9 was nobody's
  EXPECT_TRUE(cache->is_whole());
}

TEST(PrefixCache, ShorteningATextKeepsWhatItSharedAndFreesWhatIsItsOwn) {
  Written written;
  const auto cache = cache_of(64);
  Text text(cache, written);
  ASSERT_EQ(text.read({1, 2, 3, 4, 5}), 0);
  text.tokens.insert(text.tokens.end(), {6, 7});
  ASSERT_TRUE(text.go_on(2));
  text.slots.truncate(6);
  EXPECT_EQ(cache->taken(), 6);
  text.slots.truncate(2);
  EXPECT_EQ(text.slots.shared(), 2);
  EXPECT_EQ(cache->taken(), 5);
  EXPECT_EQ(cache->make_room(cache->slots() - 2), cache->slots() - 2);  // 3, 4 and 5 may go
  text.expect_right();
  text.slots.truncate(0);
  cache->forget();
  EXPECT_EQ(cache->taken(), 0);
}

TEST(PrefixCache, TheLongestUnusedGivesWayAndALivingTextNever) {
  Written written;
  const auto cache = cache_of(32);
  Text living(cache, written);
  ASSERT_EQ(living.read({1, 2, 3, 4, 5, 6, 7, 8}), 0);
  {
    Text old(cache, written), newer(cache, written);
    ASSERT_EQ(newer.read({50, 51, 52, 53, 54, 55, 56, 57}), 0);
    ASSERT_EQ(old.read({60, 61, 62, 63, 64, 65, 66, 67}), 0);
    ASSERT_EQ(newer.read({50, 51, 52, 53, 54, 55, 56, 57}), 8);
  }  // destroyed in the other order: the newer first, so that the old one was used last
  EXPECT_EQ(cache->make_room(12), 12);
  Text again(cache, written);
  EXPECT_EQ(again.slots.begin(Tokens{60, 61, 62, 63, 64, 65, 66, 67}), 8);
  EXPECT_EQ(again.slots.begin(Tokens{50, 51, 52, 53, 54, 55, 56, 57}), 4);
  again.slots.begin({});
  std::vector<int32_t> all(24);
  ASSERT_TRUE(cache->allocate(all));
  EXPECT_EQ(cache->stored(), 8);
  living.expect_right();
  std::vector<int32_t> one(1);
  EXPECT_FALSE(cache->allocate(one));
  ASSERT_TRUE(cache->free(all).ok());
  EXPECT_TRUE(cache->is_whole());
}

TEST(PrefixCache, HoldsWhatItMustHoweverTextsComeAndGo) {
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 30; ++round) {
    Written written;
    const auto cache = cache_of(48 + 16 * static_cast<int>(random() % 8));
    std::vector<std::unique_ptr<Text>> texts;
    for (int step = 0; step < 300; ++step) {
      if (texts.size() < 1 + random() % 4) {
        texts.push_back(std::make_unique<Text>(cache, written));
        continue;
      }
      Text& text = *texts[random() % texts.size()];
      switch (random() % 5) {
        case 0:
        case 1: {  // another text, of few tokens, so that prefixes meet
          Tokens tokens(1 + random() % 40);
          for (int32_t& token : tokens) token = random() % 8 == 0 ? 1 : 0;
          refused += text.read(tokens) < 0 ? 1 : 0;
          text.tokens.resize(static_cast<size_t>(text.slots.size()));
          break;
        }
        case 2: {  // it goes on, unshared, as an answer does
          const int count = static_cast<int>(random() % 6);
          const size_t before = text.tokens.size();
          for (int i = 0; i < count; ++i) text.tokens.push_back(static_cast<int32_t>(random() % 2));
          if (!text.go_on(count)) text.tokens.resize(before);
          break;
        }
        case 3:
          text.slots.truncate(static_cast<int>(random() % 50));
          text.tokens.resize(static_cast<size_t>(text.slots.size()));
          break;
        case 4:
          if (random() % 2 == 0) {
            text.slots.share(text.tokens);
          } else {
            std::swap(texts[random() % texts.size()], texts.back());
            texts.pop_back();
          }
          break;
      }
      ASSERT_TRUE(cache->is_whole());
      for (const auto& each : texts) each->expect_right();
    }
    texts.clear();
    EXPECT_EQ(cache->taken(), cache->stored());
    cache->forget();
    EXPECT_EQ(cache->taken(), 0);
  }
  EXPECT_GT(refused, 10);
}

TEST(PrefixCache, AllocatesNothingOnceItIsThere) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  const auto cache = cache_of(256);
  PrefixSlots text(cache, 128);
  Tokens tokens(100);
  std::vector<int32_t> slots(128);
  const uint64_t before = allocations();
  for (int32_t i = 0; i < 50; ++i) {
    std::fill(tokens.begin() + i, tokens.end(), i);
    const size_t known = static_cast<size_t>(text.begin(tokens));
    const auto more = std::span(slots).first(tokens.size() - known);
    ASSERT_TRUE(cache->allocate(more));
    text.append(more);
    text.share(std::span(tokens).first(60));
    text.truncate(80);
  }
  EXPECT_EQ(allocations() - before, 0u);
}

}  // namespace
}  // namespace sapwood
