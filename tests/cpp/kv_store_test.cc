#include "memory/kv_store.h"

#include <gtest/gtest.h>

#include <limits>

namespace sapwood {
namespace {

TEST(KvStore, SlotsAreRoundedUpToWholeTilesAndMemoryIsZeroAndAligned) {
  const auto store = KvStore::create(2, 3, 32, 50);
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_EQ(store.value()->slots(), 64);
  for (int layer = 0; layer < 2; ++layer) {
    const KvLayerView view = store.value()->layer(layer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.keys) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.values) % 64, 0u);
    for (size_t i = 0; i < view.layout.elements(); ++i) {
      ASSERT_EQ(view.keys[i], 0);
      ASSERT_EQ(view.values[i], 0);
    }
  }
}

TEST(KvStore, CopyingASlotMovesEveryLayerHeadAndDimensionAndNothingElse) {
  auto created = KvStore::create(3, 2, 16, 48);
  ASSERT_TRUE(created.ok());
  KvStore& store = *created.value();
  const KvLayout layout = store.layout();
  const auto mark = [&](int layer, int head, int slot, int dim, bool key) {
    return static_cast<uint16_t>((((layer * 2 + head) * 48 + slot) * 16 + dim) * 2 + (key ? 1 : 0));
  };
  const auto for_all = [&](auto&& visit) {
    for (int layer = 0; layer < 3; ++layer) {
      const KvLayerView view = store.layer(layer);
      for (int head = 0; head < 2; ++head) {
        for (int slot = 0; slot < 48; ++slot) {
          for (int dim = 0; dim < 16; ++dim) {
            visit(layer, head, slot, dim, view.keys[layout.key_offset(head, slot, dim)],
                  view.values[layout.value_offset(head, slot, dim)]);
          }
        }
      }
    }
  };
  for_all([&](int layer, int head, int slot, int dim, uint16_t& key, uint16_t& value) {
    key = mark(layer, head, slot, dim, true);
    value = mark(layer, head, slot, dim, false);
  });
  store.copy_slot(37, 3);
  for_all([&](int layer, int head, int slot, int dim, uint16_t& key, uint16_t& value) {
    const int from = slot == 3 ? 37 : slot;
    ASSERT_EQ(key, mark(layer, head, from, dim, true));
    ASSERT_EQ(value, mark(layer, head, from, dim, false));
  });
}

TEST(KvStore, ImpossibleSizesAreRefusedWithALine) {
  EXPECT_EQ(KvStore::create(0, 1, 16, 16).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KvStore::create(1, 1, 16, 0).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(KvStore::create(1, 1, 20, 16).status().code(), Code::kUnsupported);
  const int huge = std::numeric_limits<int>::max() / 64 * 32;
  EXPECT_FALSE(KvStore::create(huge, huge, 1 << 20, 1 << 20).ok());
  EXPECT_FALSE(KvStore::create(1, 1, 16, std::numeric_limits<int>::max()).ok());
}

}  // namespace
}  // namespace sapwood
