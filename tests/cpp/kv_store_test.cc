#include "memory/kv_store.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

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

TEST(KvStore, Int8TakesABitMoreThanHalfOfFloat16AndIsZeroAndAligned) {
  const auto half = KvStore::create(30, 3, 64, 50).value();
  const auto store = KvStore::create(30, 3, 64, 50, KvFormat::kInt8).value();
  EXPECT_EQ(half->bytes_per_slot(), 30u * 3 * 2 * 64 * 2);
  EXPECT_EQ(store->bytes_per_slot(), 30u * 3 * (64 + 2 * 4 + 64 + 4));
  EXPECT_EQ(store->slots(), 64);
  for (int layer = 0; layer < 30; ++layer) {
    const KvLayerView view = store->layer(layer);
    EXPECT_EQ(view.keys, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.int8_keys) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(view.int8_values) % 64, 0u);
    for (size_t i = 0; i < view.layout.key_bytes(); ++i) ASSERT_EQ(view.int8_keys[i], 0);
    for (size_t i = 0; i < view.layout.value_bytes(); ++i) ASSERT_EQ(view.int8_values[i], 0);
  }
}

TEST(KvStore, EveryByteOfAnInt8CacheBelongsToOneSlotAndHead) {
  for (const int head_dim : {16, 48, 64}) {
    const auto store = KvStore::create(1, 2, head_dim, 32, KvFormat::kInt8).value();
    const KvLayerView view = store->layer(0);
    const KvLayout& layout = view.layout;
    std::vector<int> key_uses(layout.key_bytes()), value_uses(layout.value_bytes());
    const auto use = [](std::vector<int>& uses, const void* start, const void* at, size_t bytes) {
      const size_t first = static_cast<const uint8_t*>(at) - static_cast<const uint8_t*>(start);
      for (size_t i = 0; i < bytes; ++i) ++uses.at(first + i);
    };
    for (int head = 0; head < 2; ++head) {
      const Int8Head of = view.int8_head(head);
      for (int slot = 0; slot < 32; ++slot) {
        for (int dim = 0; dim < head_dim; ++dim) {
          use(key_uses, view.int8_keys, of.key_codes + layout.key_code(slot, dim), 1);
          use(value_uses, view.int8_values, of.value_codes + layout.value_code(slot, dim), 1);
        }
        for (int group = 0; group < layout.key_groups(); ++group) {
          use(key_uses, view.int8_keys, of.key_scales + layout.key_scale(slot, group), 4);
        }
        use(value_uses, view.int8_values, of.value_scales + slot, 4);
      }
    }
    EXPECT_EQ(key_uses, std::vector<int>(key_uses.size(), 1)) << head_dim;
    EXPECT_EQ(value_uses, std::vector<int>(value_uses.size(), 1)) << head_dim;
  }
}

TEST(KvStore, FormatsHaveNames) {
  for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kInt8}) {
    EXPECT_EQ(parse_kv_format(kv_format_name(format)), format);
  }
  EXPECT_EQ(parse_kv_format("int7"), std::nullopt);
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
