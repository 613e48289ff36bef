// Which KV slots are taken: a lock-free allocator, one bit a slot, 64 slots a word.
//
//   KvSlotBitmap slots(2048);
//   std::array<int32_t, 5> mine;
//   if (!slots.allocate(mine)) ...        // fewer than five are free
//   SAPWOOD_TRY(slots.free(mine));
//
// Any thread may call any function. A call first reserves its number on a counter and then claims
// bits by compare-and-swap, so no more bits are ever claimed than were reserved: whoever holds a
// reservation always finds enough free bits, and `allocate` fails only when there really are too
// few.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace sapwood {

class KvSlotBitmap {
 public:
  explicit KvSlotBitmap(int slots);  // the only allocation; any number from 0 up
  KvSlotBitmap(const KvSlotBitmap&) = delete;
  KvSlotBitmap& operator=(const KvSlotBitmap&) = delete;

  int slots() const { return slots_; }
  int available() const { return available_.load(std::memory_order_relaxed); }
  int taken() const { return slots_ - available(); }
  int peak() const { return peak_.load(std::memory_order_relaxed); }  // most ever taken at once
  void reset_peak() { peak_.store(taken(), std::memory_order_relaxed); }
  bool is_taken(int slot) const;  // false out of range

  // Fills `out` with that many slots in ascending order: a contiguous run, word borders or not,
  // when there is one, else scattered. All or nothing: false, and nothing taken, when too few are
  // free. Lock-free.
  [[nodiscard]] bool allocate(std::span<int32_t> out);

  // Gives slots back, in any order. A slot out of range or not taken is refused by name, before
  // anything is freed; a slot named twice in one list is freed once and then refused. Wait-free.
  Status free(std::span<const int32_t> slots);

 private:
  bool claim_run(int first, int count);
  bool allocate_contiguous(std::span<int32_t> out);
  void allocate_scattered(std::span<int32_t> out);
  void release_range(int first, int count);
  uint64_t valid_bits(int word) const;

  const int slots_;
  const int words_;
  std::unique_ptr<std::atomic<uint64_t>[]> taken_;  // [words_], bit set: taken
  alignas(64) std::atomic<int> available_;          // slots not reserved by anyone
  std::atomic<int> peak_{0};
  std::atomic<int> first_open_{0};  // no word below it had a free bit lately; a hint, never trusted
};

}  // namespace sapwood
