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
//
// Two bits stand for a slot. `claimed` keeps others off it, perhaps only for the moment in which a
// run across words is tried; `owned` is set while a caller has it. Freeing clears `owned` first,
// and whoever clears it is the one who frees: a second free of a slot is caught whatever others do,
// as long as nobody was given the slot in between (KvSlotLeases catches that too).
//
// No compare-and-swap can be fooled by a value that left and came back (ABA): a word is all the
// state that it decides on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"

namespace sapwood {

// Over the atomics given, so that a test can step through every interleaving
// (kv_slot_bitmap_algorithm.h has the definitions).
template <template <typename> class Atomic>
class BasicKvSlotBitmap {
 public:
  explicit BasicKvSlotBitmap(int slots);  // the only allocation; any number from 0 up
  BasicKvSlotBitmap(const BasicKvSlotBitmap&) = delete;
  BasicKvSlotBitmap& operator=(const BasicKvSlotBitmap&) = delete;

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

  // The first of `count` (at least 1) contiguous slots; -1, and nothing taken, when there is no
  // such run. Lock-free.
  [[nodiscard]] int allocate_run(int count);

  // Gives slots back, in any order. A slot out of range or not taken is refused by name, before
  // anything is freed; a slot named twice in one list is freed once and then refused. Wait-free.
  Status free(std::span<const int32_t> slots);

  // The same for `count` slots from `first`.
  Status free_run(int first, int count);

 private:
  bool reserve(int count);
  int claim_first_run(int count);
  bool claim_run(int first, int count);
  void claim_scattered(std::span<int32_t> out);
  void own_run(int first, int count);
  uint64_t disown(int word, uint64_t mask);
  Status finish_free(int freed, int refused);
  uint64_t valid_bits(int word) const;

  const int slots_;
  const int words_;
  std::unique_ptr<Atomic<uint64_t>[]> claimed_;  // [words_], bit set: not to be claimed
  std::unique_ptr<Atomic<uint64_t>[]> owned_;    // [words_], bit set: given out
  alignas(64) Atomic<int> available_;            // slots not reserved by anyone
  Atomic<int> peak_{0};
  Atomic<int> first_open_{0};  // no word below it had a free bit lately; a hint, never trusted
};

extern template class BasicKvSlotBitmap<std::atomic>;
using KvSlotBitmap = BasicKvSlotBitmap<std::atomic>;

}  // namespace sapwood
