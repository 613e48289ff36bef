#include "memory/kv_slot_bitmap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace sapwood {
namespace {

std::vector<int32_t> take(KvSlotBitmap& bitmap, int count) {
  std::vector<int32_t> slots(count);
  return bitmap.allocate(slots) ? slots : std::vector<int32_t>();
}

bool is_run(const std::vector<int32_t>& slots) {
  for (size_t i = 1; i < slots.size(); ++i) {
    if (slots[i] != slots[i - 1] + 1) return false;
  }
  return true;
}

TEST(KvSlotBitmap, ARunCrossesWordBorders) {
  KvSlotBitmap bitmap(256);
  EXPECT_EQ(take(bitmap, 60).front(), 0);
  const std::vector<int32_t> slots = take(bitmap, 140);
  ASSERT_EQ(slots.size(), 140u);
  EXPECT_EQ(slots.front(), 60);
  EXPECT_TRUE(is_run(slots));
  EXPECT_EQ(bitmap.taken(), 200);
}

TEST(KvSlotBitmap, EverySlotOfAnOddSizeCanBeTakenAndNoMore) {
  for (const int size : {1, 63, 64, 65, 100, 2048, 2049}) {
    KvSlotBitmap bitmap(size);
    const std::vector<int32_t> all = take(bitmap, size);
    ASSERT_EQ(static_cast<int>(all.size()), size);
    EXPECT_EQ(all.front(), 0);
    EXPECT_EQ(all.back(), size - 1);
    std::array<int32_t, 1> one;
    EXPECT_FALSE(bitmap.allocate(one)) << size;
    EXPECT_TRUE(bitmap.free(all).ok());
    EXPECT_EQ(bitmap.available(), size);
  }
}

TEST(KvSlotBitmap, NoSlotsAtAllIsASizeToo) {
  KvSlotBitmap bitmap(0);
  std::array<int32_t, 1> one;
  EXPECT_FALSE(bitmap.allocate(one));
  EXPECT_TRUE(bitmap.allocate({}));
  EXPECT_FALSE(bitmap.is_taken(0));
}

TEST(KvSlotBitmap, SlotsAreScatteredOnlyWhenNoRunIsLeft) {
  KvSlotBitmap bitmap(192);
  const std::vector<int32_t> all = take(bitmap, 192);
  std::vector<int32_t> odd;
  for (int slot = 1; slot < 192; slot += 2) odd.push_back(slot);
  ASSERT_TRUE(bitmap.free(odd).ok());
  const std::vector<int32_t> scattered = take(bitmap, 3);
  EXPECT_EQ(scattered, (std::vector<int32_t>{1, 3, 5}));
  ASSERT_TRUE(bitmap.free(std::array<int32_t, 2>{62, 64}).ok());  // 61 .. 65 is a run now
  EXPECT_EQ(take(bitmap, 5), (std::vector<int32_t>{61, 62, 63, 64, 65}));
}

TEST(KvSlotBitmap, TooManySlotsAreRefusedAndNothingIsTaken) {
  KvSlotBitmap bitmap(70);
  take(bitmap, 65);
  std::array<int32_t, 6> six;
  EXPECT_FALSE(bitmap.allocate(six));
  EXPECT_EQ(bitmap.taken(), 65);
  EXPECT_EQ(take(bitmap, 5).size(), 5u);
}

TEST(KvSlotBitmap, FreeingATwiceFreedSlotIsRefused) {
  KvSlotBitmap bitmap(64);
  const std::vector<int32_t> slots = take(bitmap, 4);
  ASSERT_TRUE(bitmap.free(slots).ok());
  const Status again = bitmap.free(slots);
  EXPECT_EQ(again.code(), Code::kInvalidArgument);
  EXPECT_NE(again.message().find("slot 0"), std::string::npos) << again.message();
  EXPECT_EQ(bitmap.available(), 64);
}

TEST(KvSlotBitmap, ASlotNamedTwiceIsFreedOnceAndRefused) {
  KvSlotBitmap bitmap(256);
  take(bitmap, 200);
  EXPECT_FALSE(bitmap.free(std::array<int32_t, 3>{5, 6, 5}).ok());
  EXPECT_EQ(bitmap.available(), 58);
  EXPECT_FALSE(bitmap.free(std::array<int32_t, 3>{7, 150, 7}).ok());  // not next to each other
  EXPECT_EQ(bitmap.available(), 60);
}

TEST(KvSlotBitmap, ABadSlotInAListFreesNothing) {
  KvSlotBitmap bitmap(64);
  take(bitmap, 8);
  EXPECT_FALSE(bitmap.free(std::array<int32_t, 3>{1, 2, 64}).ok());
  EXPECT_FALSE(bitmap.free(std::array<int32_t, 3>{1, 2, -1}).ok());
  EXPECT_FALSE(bitmap.free(std::array<int32_t, 3>{1, 2, 30}).ok());
  EXPECT_EQ(bitmap.taken(), 8);
}

TEST(KvSlotBitmap, ARunIsAllThereOrNothingIsTaken) {
  KvSlotBitmap bitmap(200);
  EXPECT_EQ(bitmap.allocate_run(60), 0);
  EXPECT_EQ(bitmap.allocate_run(80), 60);
  ASSERT_TRUE(bitmap.free_run(0, 60).ok());
  EXPECT_EQ(bitmap.available(), 120);
  EXPECT_EQ(bitmap.allocate_run(61), -1);  // 60 and 60 are free, not side by side
  EXPECT_EQ(bitmap.available(), 120);
  ASSERT_TRUE(bitmap.free_run(60, 1).ok());
  EXPECT_EQ(bitmap.allocate_run(61), 0);
  EXPECT_EQ(bitmap.allocate_run(0), -1);
  EXPECT_EQ(bitmap.allocate_run(201), -1);
}

TEST(KvSlotBitmap, ARunThatIsNotAllTakenIsRefusedAndStays) {
  KvSlotBitmap bitmap(130);
  ASSERT_EQ(bitmap.allocate_run(100), 0);
  const Status status = bitmap.free_run(50, 51);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("slot 100 "), std::string::npos) << status.message();
  EXPECT_EQ(bitmap.taken(), 100);
  for (const auto& [first, count] : {std::pair(-1, 1), {0, -1}, {100, 31}, {131, 0}, {0, 131}}) {
    EXPECT_FALSE(bitmap.free_run(first, count).ok()) << first << ' ' << count;
  }
  EXPECT_TRUE(bitmap.free_run(0, 100).ok());
  EXPECT_TRUE(bitmap.free_run(0, 0).ok());
  EXPECT_EQ(bitmap.taken(), 0);
}

TEST(KvSlotBitmap, ThePeakIsTheMostEverTaken) {
  KvSlotBitmap bitmap(64);
  const std::vector<int32_t> slots = take(bitmap, 40);
  ASSERT_TRUE(bitmap.free(slots).ok());
  take(bitmap, 10);
  EXPECT_EQ(bitmap.peak(), 40);
  bitmap.reset_peak();
  EXPECT_EQ(bitmap.peak(), 10);
}

// Against a plain list of booleans: same answers, contiguous exactly when a run exists.
TEST(KvSlotBitmap, RandomUseEqualsAPlainModel) {
  std::mt19937 random(7);
  for (const int size : {17, 64, 130, 500}) {
    KvSlotBitmap bitmap(size);
    std::vector<bool> taken(size, false);
    std::vector<std::vector<int32_t>> held;
    for (int turn = 0; turn < 4000; ++turn) {
      if (random() % 2 == 0) {
        const int count = 1 + static_cast<int>(random() % (turn % 10 == 0 ? size : 40));
        const int free_slots = static_cast<int>(std::count(taken.begin(), taken.end(), false));
        int run = 0;
        int longest = 0;
        for (int slot = 0; slot < size; ++slot) {
          run = taken[slot] ? 0 : run + 1;
          longest = std::max(longest, run);
        }
        std::vector<int32_t> slots(count);
        ASSERT_EQ(bitmap.allocate(slots), count <= free_slots);
        if (count > free_slots) continue;
        EXPECT_EQ(is_run(slots), longest >= count);
        EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end()));
        for (const int32_t slot : slots) {
          ASSERT_GE(slot, 0);
          ASSERT_LT(slot, size);
          ASSERT_FALSE(taken[slot]);
          taken[slot] = true;
        }
        held.push_back(slots);
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        std::vector<int32_t> slots = held.back();
        held.pop_back();
        std::shuffle(slots.begin(), slots.end(), random);
        const size_t part = random() % (slots.size() + 1);
        ASSERT_TRUE(bitmap.free(std::span<const int32_t>(slots).first(part)).ok());
        ASSERT_TRUE(bitmap.free(std::span<const int32_t>(slots).subspan(part)).ok());
        for (const int32_t slot : slots) taken[slot] = false;
      }
      ASSERT_EQ(bitmap.taken(), std::count(taken.begin(), taken.end(), true));
      for (int slot = 0; slot < size; ++slot) ASSERT_EQ(bitmap.is_taken(slot), taken[slot]);
    }
  }
}

// Eight threads; every slot carries its owner, so two owners of one slot would be seen.
TEST(KvSlotBitmap, EightThreadsNeverShareASlot) {
  constexpr int kThreads = 8;
  constexpr int kSlots = 300;
  KvSlotBitmap bitmap(kSlots);
  std::vector<std::atomic<int>> owner(kSlots);
  std::atomic<int> clashes{0};
  std::atomic<int> refusals{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<int32_t> slots;
      for (int turn = 0; turn < 2000; ++turn) {
        slots.resize(1 + random() % 70);
        if (!bitmap.allocate(slots)) {
          ++refusals;
          continue;
        }
        for (const int32_t slot : slots) {
          if (owner[slot].exchange(t) != 0) ++clashes;
        }
        if (turn % 8 == 0) std::this_thread::yield();
        for (const int32_t slot : slots) {
          if (owner[slot].exchange(0) != t) ++clashes;
        }
        if (!bitmap.free(slots).ok()) ++clashes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes.load(), 0);
  EXPECT_EQ(bitmap.available(), kSlots);
  EXPECT_LE(bitmap.peak(), kSlots);
}

// As many slots as the threads want at most: a reservation must always be met, so none is refused.
TEST(KvSlotBitmap, NobodyIsRefusedWhileThereIsRoomForAll) {
  constexpr int kThreads = 8;
  constexpr int kEach = 24;
  KvSlotBitmap bitmap(kThreads * kEach);
  std::atomic<int> refusals{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<int32_t> slots;
      for (int turn = 0; turn < 2000; ++turn) {
        slots.resize(1 + random() % kEach);
        if (!bitmap.allocate(slots)) {
          ++refusals;
        } else if (!bitmap.free(slots).ok()) {
          ++refusals;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refusals.load(), 0);
  EXPECT_EQ(bitmap.taken(), 0);
}

TEST(KvSlotBitmap, OfRacingFreesOfOneSlotExactlyOneSucceeds) {
  for (int round = 0; round < 200; ++round) {
    KvSlotBitmap bitmap(64);
    std::array<int32_t, 1> slot;
    ASSERT_TRUE(bitmap.allocate(slot));
    std::atomic<int> succeeded{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] { succeeded += bitmap.free(slot).ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(succeeded.load(), 1);
    ASSERT_EQ(bitmap.available(), 64);
  }
}

}  // namespace
}  // namespace sapwood
