#include "memory/prefix_trie.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "measure/allocation_counter.h"
#include "memory/kv_slot_bitmap.h"

namespace sapwood {
namespace {

using Tokens = std::vector<int32_t>;

// A request as an engine would make it: what is stored is reused, the rest is computed into slots
// of the bitmap, and the whole prompt is stored.
struct Request {
  PrefixTrie::Node held = PrefixTrie::kRoot;
  Tokens slots;
  int reused = 0;
};

struct Cache {
  explicit Cache(int slots) : trie(slots), bitmap(slots) {}

  // False where there is no room, even after evicting: nothing is held then.
  bool serve(const Tokens& prompt, Request* request) {
    request->slots.assign(prompt.size(), -1);
    request->held = trie.acquire(prompt, request->slots);
    request->reused = trie.depth(request->held);
    const auto rest = std::span(request->slots).subspan(static_cast<size_t>(request->reused));
    if (!bitmap.allocate(rest)) {
      std::vector<int32_t> gone(rest.size());
      gone.resize(static_cast<size_t>(trie.evict(gone)));
      EXPECT_TRUE(bitmap.free(gone).ok());
      if (!bitmap.allocate(rest)) {
        trie.release(request->held);
        return false;
      }
    }
    store(prompt, request);
    return true;
  }

  void store(const Tokens& prompt, Request* request) {
    const size_t known = static_cast<size_t>(request->reused);
    std::vector<int32_t> duplicates(prompt.size());
    int count = 0;
    request->held = trie.extend(request->held, std::span(prompt).subspan(known),
                                std::span(request->slots).subspan(known), duplicates, &count);
    duplicates.resize(static_cast<size_t>(count));
    EXPECT_TRUE(bitmap.free(duplicates).ok());
  }

  PrefixTrie trie;
  KvSlotBitmap bitmap;
};

TEST(PrefixTrie, ASecondRequestComputesOnlyWhatTheFirstDidNot) {
  Cache cache(64);
  Request first, second, third;
  ASSERT_TRUE(cache.serve({1, 2, 3, 4, 5}, &first));
  EXPECT_EQ(first.reused, 0);
  ASSERT_TRUE(cache.serve({1, 2, 3, 9}, &second));
  EXPECT_EQ(second.reused, 3);
  EXPECT_TRUE(std::equal(first.slots.begin(), first.slots.begin() + 3, second.slots.begin()));
  ASSERT_TRUE(cache.serve({2, 3}, &third));  // the same tokens elsewhere are something else
  EXPECT_EQ(third.reused, 0);
  EXPECT_EQ(cache.trie.stored(), 8);
  EXPECT_EQ(cache.bitmap.taken(), 8);
  Request again;
  ASSERT_TRUE(cache.serve({1, 2, 3, 4, 5}, &again));
  EXPECT_EQ(again.reused, 5);
  EXPECT_EQ(again.slots, first.slots);
  EXPECT_EQ(cache.trie.references(first.held), 2);
}

TEST(PrefixTrie, WhatIsHeldOrFollowedStaysAndTheLongestUnusedGoesFirst) {
  Cache cache(16);
  Request one, two, three;
  ASSERT_TRUE(cache.serve({1, 2, 3}, &one));
  ASSERT_TRUE(cache.serve({1, 2, 4, 5}, &two));
  ASSERT_TRUE(cache.serve({7, 8}, &three));
  std::array<int32_t, 16> gone;
  EXPECT_EQ(cache.trie.evict(gone), 0);
  cache.trie.release(two.held);
  cache.trie.release(three.held);
  EXPECT_EQ(cache.trie.evictable(), 2);
  EXPECT_EQ(cache.trie.evict(std::span(gone).first(1)), 1);
  EXPECT_EQ(gone[0], two.slots[3]);
  EXPECT_EQ(cache.trie.evict(gone), 3);  // 4 behind 5, then 8 and 7; 1, 2 and 3 are held
  EXPECT_EQ(gone[0], two.slots[2]);
  EXPECT_EQ(gone[1], three.slots[1]);
  EXPECT_EQ(gone[2], three.slots[0]);
  cache.trie.release(one.held);
  EXPECT_EQ(cache.trie.evict(gone), 3);
  EXPECT_EQ(cache.trie.stored(), 0);
}

TEST(PrefixTrie, OfTwoWhoComputedTheSameTheSecondGetsTheFirstOnesSlots) {
  Cache cache(16);
  const Tokens prompt = {5, 6, 7};
  Request early, late;
  early.slots.resize(3);
  late.slots.resize(3);
  ASSERT_TRUE(cache.bitmap.allocate(early.slots));
  ASSERT_TRUE(cache.bitmap.allocate(late.slots));
  const Tokens own = late.slots;
  cache.store(prompt, &early);
  cache.store(prompt, &late);
  EXPECT_EQ(late.slots, early.slots);
  EXPECT_EQ(late.held, early.held);
  EXPECT_EQ(cache.bitmap.taken(), 3);
  for (const int32_t slot : own) EXPECT_FALSE(cache.bitmap.is_taken(slot));
  EXPECT_EQ(cache.trie.references(early.held), 2);
}

TEST(PrefixTrie, NothingAtAllIsAPrefixToo) {
  PrefixTrie trie(0);
  const std::array<int32_t, 1> one = {3};
  std::array<int32_t, 1> room;
  EXPECT_EQ(trie.acquire({}, {}), PrefixTrie::kRoot);
  EXPECT_EQ(trie.acquire(one, room), PrefixTrie::kRoot);
  trie.release(PrefixTrie::kRoot);
  EXPECT_EQ(trie.evict(room), 0);
  EXPECT_EQ(trie.depth(PrefixTrie::kRoot), 0);
}

// Against a map from prefixes to slots: what is found is the longest prefix stored, in its own
// slots; nothing held is evicted; every slot comes back.
TEST(PrefixTrie, RandomRequestsEqualAPlainModel) {
  for (const int slots : {12, 40, 200}) {
    std::mt19937 random(static_cast<unsigned>(slots));
    Cache cache(slots);
    std::map<Tokens, int32_t> model;  // of what is in the trie
    std::vector<std::pair<Tokens, Request>> active;
    for (int turn = 0; turn < 3000; ++turn) {
      if (random() % 2 == 0) {
        Tokens prompt(1 + random() % 9);
        for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 3);
        Request request;
        const bool served = cache.serve(prompt, &request);
        // What eviction took away.
        for (auto entry = model.begin(); entry != model.end();) {
          Tokens found(entry->first.size());
          const PrefixTrie::Node node = cache.trie.acquire(entry->first, found);
          const bool there = cache.trie.depth(node) == static_cast<int>(found.size());
          EXPECT_TRUE(!there || found.back() == entry->second);
          cache.trie.release(node);
          entry = there ? std::next(entry) : model.erase(entry);
        }
        if (served) {
          for (size_t i = 0; i < prompt.size(); ++i) {
            const Tokens prefix(prompt.begin(), prompt.begin() + static_cast<long>(i) + 1);
            const auto known = model.emplace(prefix, request.slots[i]).first;
            EXPECT_EQ(known->second, request.slots[i]);
          }
          active.emplace_back(prompt, request);
        }
      } else if (!active.empty()) {
        std::swap(active[random() % active.size()], active.back());
        cache.trie.release(active.back().second.held);
        active.pop_back();
      }
      ASSERT_EQ(cache.trie.stored(), static_cast<int>(model.size()));
      ASSERT_EQ(cache.bitmap.taken(), cache.trie.stored());
      std::set<int32_t> distinct;
      for (const auto& [prefix, slot] : model) distinct.insert(slot);
      ASSERT_EQ(distinct.size(), model.size());
      for (const auto& [prompt, request] : active) {
        for (size_t i = 0; i < prompt.size(); ++i) {
          const Tokens prefix(prompt.begin(), prompt.begin() + static_cast<long>(i) + 1);
          ASSERT_TRUE(model.contains(prefix)) << "something held was evicted";
        }
      }
    }
    for (const auto& [prompt, request] : active) cache.trie.release(request.held);
    std::vector<int32_t> gone(static_cast<size_t>(slots));
    gone.resize(static_cast<size_t>(cache.trie.evict(gone)));
    ASSERT_TRUE(cache.bitmap.free(gone).ok());
    EXPECT_EQ(cache.bitmap.taken(), 0);
    EXPECT_EQ(cache.trie.stored(), 0);
    EXPECT_EQ(cache.trie.evictable(), 0);
  }
}

TEST(PrefixTrie, ServingAllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  PrefixTrie trie(64);
  const std::array<int32_t, 4> tokens = {1, 2, 3, 4};
  std::array<int32_t, 4> slots = {10, 11, 12, 13}, found, duplicates;
  const uint64_t before = allocations();
  int count = 0;
  const PrefixTrie::Node held =
      trie.extend(trie.acquire(tokens, found), tokens, slots, duplicates, &count);
  trie.release(held);
  EXPECT_EQ(trie.acquire(tokens, found), held);
  trie.release(held);
  EXPECT_EQ(trie.evict(found), 4);
  EXPECT_EQ(allocations() - before, 0u);
}

}  // namespace
}  // namespace sapwood
