// Small instances of the slot bitmap, in every order that two or three threads can take.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "interleavings.h"
#include "memory/kv_slot_bitmap_algorithm.h"
#include "memory/kv_slot_leases.h"

namespace sapwood {
namespace {

using SteppedBitmap = BasicKvSlotBitmap<SteppedAtomic>;
using SteppedLeases = BasicKvSlotLeases<SteppedAtomic>;

// 66 slots of which 62 are taken: what is free lies across a word border.
constexpr int kSlots = 66;
constexpr int kFree = 4;

class BitmapWorld : public World {
 public:
  BitmapWorld() {
    std::vector<int32_t> most(kSlots - kFree);
    EXPECT_TRUE(bitmap.allocate(most));
  }

  // Allocates `count`, notes whose they are, and frees them again if told to.
  std::function<void()> user(int who, int count, bool gives_back) {
    return [this, who, count, gives_back] {
      std::array<int32_t, kFree> room;
      const std::span<int32_t> slots = std::span<int32_t>(room).first(static_cast<size_t>(count));
      if (!bitmap.allocate(slots)) {
        ++refused;
        return;
      }
      for (size_t i = 0; i < slots.size(); ++i) {
        EXPECT_EQ(std::exchange(owner[static_cast<size_t>(slots[i])], who), 0);
        EXPECT_TRUE(i == 0 || slots[i] > slots[i - 1]);
      }
      if (!gives_back) return;
      for (const int32_t slot : slots) {
        EXPECT_EQ(std::exchange(owner[static_cast<size_t>(slot)], 0), who);
      }
      const long before = interleaving::operations();
      const bool freed = bitmap.free(slots).ok();
      EXPECT_TRUE(freed);
      // Wait-free: at most two looks and five operations a word, and the count, whatever others do.
      EXPECT_LE(interleaving::operations() - before, count + 2 * 4 + 1);
    };
  }

  SteppedBitmap bitmap{kSlots};
  std::array<int, kSlots> owner{};
  int refused = 0;
};

class UsersWorld : public BitmapWorld {
 public:
  UsersWorld(std::vector<int> counts, bool give_back)
      : counts_(std::move(counts)), give_back_(give_back) {}
  std::vector<std::function<void()>> programs() override {
    std::vector<std::function<void()>> all;
    for (size_t i = 0; i < counts_.size(); ++i) {
      all.push_back(user(static_cast<int>(i) + 1, counts_[i], give_back_));
    }
    return all;
  }
  void check() override {
    int wanted = 0;
    for (const int count : counts_) wanted += count;
    EXPECT_TRUE(wanted > kFree || refused == 0) << refused;
    int held = 0;
    for (size_t slot = 0; slot < owner.size(); ++slot) {
      held += owner[slot] != 0 ? 1 : 0;
      EXPECT_EQ(bitmap.is_taken(static_cast<int>(slot)), slot < kSlots - kFree || owner[slot] != 0);
    }
    EXPECT_EQ(bitmap.taken(), kSlots - kFree + held);
    EXPECT_TRUE(!give_back_ || held == 0) << held;
    // Nothing that was claimed for a moment has stayed so.
    std::vector<int32_t> rest(static_cast<size_t>(kFree - held));
    EXPECT_TRUE(bitmap.allocate(rest));
  }

 private:
  std::vector<int> counts_;
  bool give_back_;
};

Explored explore_users(const std::vector<int>& counts, bool give_back) {
  const Explored explored =
      explore([&] { return std::make_unique<UsersWorld>(counts, give_back); });
  EXPECT_GT(explored.runs, 0);
  EXPECT_GT(explored.states, 100);
  return explored;
}

TEST(KvSlotInterleavings, TwoUsersAcrossAWordBorderNeverShareASlotAndNeitherIsRefused) {
  if (!can_explore()) GTEST_SKIP() << "the thread sanitizer does not follow switches of stacks";
  EXPECT_EQ(explore_users({2, 2}, true).cut, 0);
  explore_users({3, 1}, false);
}

TEST(KvSlotInterleavings, OfThreeUsersWhoWantTooMuchSomeAreRefusedAndTakeNothing) {
  if (!can_explore()) GTEST_SKIP() << "the thread sanitizer does not follow switches of stacks";
  explore_users({2, 3}, false);
  explore_users({4, 4}, true);
  explore_users({2, 2, 1}, false);
}

// Slot 62 was freed and is freed once more, while a run across it is tried: perhaps in vain, and
// then the slot is claimed for a moment without having an owner, as another slot stands in the way.
class DoubleFreeWorld : public BitmapWorld {
 public:
  DoubleFreeWorld() {
    shared = bitmap.allocate_run(1);
    EXPECT_TRUE(bitmap.free_run(shared, 1).ok());
  }
  std::vector<std::function<void()>> programs() override {
    const auto frees_again = [this] { succeeded = bitmap.free_run(shared, 1).ok(); };
    const auto tries_run = [this] { run = bitmap.allocate_run(3); };
    const auto stands_in_its_way = [this] { other = bitmap.allocate_run(2); };
    return {frees_again, tries_run, stands_in_its_way};
  }
  void check() override {
    // Only where the slot had an owner again could it be right.
    EXPECT_TRUE(!succeeded || run == shared || other == shared);
    EXPECT_EQ(bitmap.taken() + (succeeded ? 1 : 0),
              kSlots - kFree + (run < 0 ? 0 : 3) + (other < 0 ? 0 : 2));
    in_vain += run < 0 ? 1 : 0;
  }

  static inline int in_vain = 0;
  int32_t shared = -1;
  bool succeeded = false;
  int run = -1, other = -1;
};

TEST(KvSlotInterleavings, AFreeThatComesTwiceIsCaughtWhateverOthersTry) {
  if (!can_explore()) GTEST_SKIP() << "the thread sanitizer does not follow switches of stacks";
  const Explored explored = explore([] { return std::make_unique<DoubleFreeWorld>(); });
  EXPECT_GT(explored.runs, DoubleFreeWorld::in_vain);
  EXPECT_GT(DoubleFreeWorld::in_vain, 0);
}

// The same with leases, which even then let only one through: ABA.
class LeasesWorld : public World {
 public:
  LeasesWorld() {
    EXPECT_TRUE(leases.allocate(std::span<int32_t>(&slot, 1), std::span<uint32_t>(&life, 1)));
  }
  std::vector<std::function<void()>> programs() override {
    const auto frees = [this] {
      const bool freed =
          leases.free(std::span<const int32_t>(&slot, 1), std::span<const uint32_t>(&life, 1)).ok();
      succeeded += freed ? 1 : 0;
    };
    const auto takes = [this] {
      taken =
          leases.allocate(std::span<int32_t>(&next_slot, 1), std::span<uint32_t>(&next_life, 1));
    };
    return {frees, frees, takes};
  }
  void check() override {
    EXPECT_EQ(succeeded, 1);
    EXPECT_EQ(leases.bitmap().taken(), taken ? 1 : 0);
    if (!taken) return;
    EXPECT_NE(next_life, life);
    EXPECT_TRUE(leases.bitmap().is_taken(next_slot));
    EXPECT_TRUE(
        leases
            .free(std::span<const int32_t>(&next_slot, 1), std::span<const uint32_t>(&next_life, 1))
            .ok());
  }

  SteppedLeases leases{1};
  int32_t slot = -1, next_slot = -1;
  uint32_t life = 0, next_life = 0;
  int succeeded = 0;
  bool taken = false;
};

TEST(KvSlotInterleavings, ALeaseIsEndedOnceEvenIfItsSlotHasANewOwner) {
  if (!can_explore()) GTEST_SKIP() << "the thread sanitizer does not follow switches of stacks";
  const Explored explored = explore([] { return std::make_unique<LeasesWorld>(); });
  EXPECT_GT(explored.runs, 0);
  EXPECT_EQ(explored.cut, 0);
}

// The explorer itself: two increments by load and store lose one in some orders, and only in some.
class LostUpdateWorld : public World {
 public:
  explicit LostUpdateWorld(std::array<int, 3>& ends) : ends_(ends) {}
  std::vector<std::function<void()>> programs() override {
    const auto adds = [this] {
      counter_.store(counter_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    };
    return {adds, adds};
  }
  void check() override { ++ends_[counter_.load(std::memory_order_relaxed)]; }

 private:
  SteppedAtomic<uint32_t> counter_;
  std::array<int, 3>& ends_;
};

TEST(KvSlotInterleavings, TheExplorerFindsALostUpdate) {
  if (!can_explore()) GTEST_SKIP() << "the thread sanitizer does not follow switches of stacks";
  std::array<int, 3> ends{};
  explore([&] { return std::make_unique<LostUpdateWorld>(ends); });
  EXPECT_EQ(ends[0], 0);
  EXPECT_GT(ends[1], 0);
  EXPECT_GT(ends[2], 0);
}

// ---- leases on real atomics ---------------------------------------------------------------------

TEST(KvSlotLeases, AStaleLeaseIsRefusedByNameAndTheOthersAreFreed) {
  KvSlotLeases leases(8);
  std::array<int32_t, 3> slots;
  std::array<uint32_t, 3> lives;
  ASSERT_TRUE(leases.allocate(slots, lives));
  ASSERT_TRUE(leases.free(std::span(slots).subspan(1, 1), std::span(lives).subspan(1, 1)).ok());
  std::array<int32_t, 1> again;
  std::array<uint32_t, 1> new_life;
  ASSERT_TRUE(leases.allocate(again, new_life));
  ASSERT_EQ(again[0], slots[1]);  // the slot has a new owner
  const Status status = leases.free(slots, lives);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("slot 1 is not leased"), std::string::npos) << status.message();
  EXPECT_EQ(leases.bitmap().taken(), 1);
  EXPECT_TRUE(leases.bitmap().is_taken(again[0]));
  EXPECT_TRUE(leases.free(again, new_life).ok());
  EXPECT_FALSE(leases.free(std::array<int32_t, 2>{-1, 8}, std::array<uint32_t, 2>{0, 0}).ok());
  EXPECT_EQ(leases.bitmap().taken(), 0);
}

}  // namespace
}  // namespace sapwood
