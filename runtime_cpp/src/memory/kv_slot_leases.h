// KV slots that are given out with a generation, for stages that might give one back late.
//
// A bitmap cannot tell a slot's owner from its owner before: a slot that is freed, given to
// somebody else and freed again by the first looks taken both times (ABA). A lease says which life
// of the slot it means; whoever ends that life first is the one who frees, and everyone else is
// refused.
//
//   KvSlotLeases leases(2048);
//   std::array<int32_t, 5> slots;
//   std::array<uint32_t, 5> generations;
//   if (!leases.allocate(slots, generations)) ...
//   SAPWOOD_TRY(leases.free(slots, generations));
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>

#include "memory/kv_slot_bitmap.h"

namespace sapwood {

template <template <typename> class Atomic>
class BasicKvSlotLeases {
 public:
  explicit BasicKvSlotLeases(int slots)
      : bitmap_(slots),
        generations_(std::make_unique<Atomic<uint32_t>[]>(static_cast<size_t>(bitmap_.slots()))) {}

  // Counts and is_taken(); freeing through it is not for holders of leases.
  const BasicKvSlotBitmap<Atomic>& bitmap() const { return bitmap_; }

  // As BasicKvSlotBitmap::allocate, with each slot's present life (spans of one size).
  [[nodiscard]] bool allocate(std::span<int32_t> slots, std::span<uint32_t> generations) {
    assert(slots.size() == generations.size());
    if (!bitmap_.allocate(slots)) return false;
    for (size_t i = 0; i < slots.size(); ++i) {
      generations[i] = generations_[slots[i]].load(std::memory_order_acquire);
    }
    return true;
  }

  // Ends those lives and frees the slots. A slot that does not exist, or whose life is another one,
  // is refused by name and left alone; the others are freed all the same. Wait-free.
  Status free(std::span<const int32_t> slots, std::span<const uint32_t> generations) {
    assert(slots.size() == generations.size());
    Status worst = Status::okay();
    size_t begin = 0;  // of those whose lives ended here and that are not free yet
    for (size_t i = 0; i < slots.size(); ++i) {
      const int32_t slot = slots[i];
      if (slot >= 0 && slot < bitmap_.slots()) {
        uint32_t life = generations[i];
        if (generations_[slot].compare_exchange_strong(life, life + 1, std::memory_order_acq_rel,
                                                       std::memory_order_relaxed)) {
          continue;
        }
      }
      worst = Status(Code::kInvalidArgument,
                     "KV slot " + std::to_string(slot) + " is not leased any more");
      SAPWOOD_TRY(bitmap_.free(slots.subspan(begin, i - begin)));
      begin = i + 1;
    }
    SAPWOOD_TRY(bitmap_.free(slots.subspan(begin)));
    return worst;
  }

 private:
  BasicKvSlotBitmap<Atomic> bitmap_;
  std::unique_ptr<Atomic<uint32_t>[]> generations_;  // [slots], how often each was freed
};

using KvSlotLeases = BasicKvSlotLeases<std::atomic>;

}  // namespace sapwood
