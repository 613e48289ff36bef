#include "memory/kv_slot_bitmap.h"

#include <algorithm>
#include <bit>
#include <string>

namespace sapwood {
namespace {

constexpr int kWordBits = 64;

// `count` (1 .. 64) set bits from bit `first`.
uint64_t mask_of(int first, int count) { return (~uint64_t{0} >> (kWordBits - count)) << first; }

Status refuse(int32_t slot, const char* why) {
  return Status(Code::kInvalidArgument, "KV slot " + std::to_string(slot) + ' ' + why);
}

}  // namespace

KvSlotBitmap::KvSlotBitmap(int slots)
    : slots_(std::max(slots, 0)),
      words_((slots_ + kWordBits - 1) / kWordBits),
      taken_(std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(words_))),
      available_(slots_) {
  for (int w = 0; w < words_; ++w) {
    taken_[w].store(~valid_bits(w), std::memory_order_relaxed);
  }
}

// Bits of a word that stand for slots; the rest of the last word is never free.
uint64_t KvSlotBitmap::valid_bits(int word) const {
  const int bits = std::min(slots_ - word * kWordBits, kWordBits);
  return mask_of(0, bits);
}

bool KvSlotBitmap::is_taken(int slot) const {
  if (slot < 0 || slot >= slots_) return false;
  const uint64_t word = taken_[slot / kWordBits].load(std::memory_order_acquire);
  return ((word >> (slot % kWordBits)) & 1) != 0;
}

bool KvSlotBitmap::allocate(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  if (count == 0) return true;
  int available = available_.load(std::memory_order_relaxed);
  do {
    if (available < count) return false;
  } while (!available_.compare_exchange_weak(available, available - count,
                                             std::memory_order_acquire, std::memory_order_relaxed));
  const int now_taken = slots_ - (available - count);
  int peak = peak_.load(std::memory_order_relaxed);
  while (peak < now_taken &&
         !peak_.compare_exchange_weak(peak, now_taken, std::memory_order_relaxed)) {
  }
  if (!allocate_contiguous(out)) allocate_scattered(out);
  return true;
}

// Sets bits first .. first + count, which may span words; on meeting a taken one, undoes its own.
bool KvSlotBitmap::claim_run(int first, int count) {
  int slot = first;
  while (slot < first + count) {
    const int bit = slot % kWordBits;
    const int here = std::min(kWordBits - bit, first + count - slot);
    const uint64_t mask = mask_of(bit, here);
    std::atomic<uint64_t>& word = taken_[slot / kWordBits];
    uint64_t seen = word.load(std::memory_order_relaxed);
    do {
      if ((seen & mask) != 0) {
        release_range(first, slot - first);
        return false;
      }
    } while (!word.compare_exchange_weak(seen, seen | mask, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    slot += here;
  }
  return true;
}

void KvSlotBitmap::release_range(int first, int count) {
  for (int slot = first; slot < first + count;) {
    const int bit = slot % kWordBits;
    const int here = std::min(kWordBits - bit, first + count - slot);
    taken_[slot / kWordBits].fetch_and(~mask_of(bit, here), std::memory_order_release);
    slot += here;
  }
}

// First fit: walks the free runs in order, joining runs that meet at a word border.
bool KvSlotBitmap::allocate_contiguous(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  const int start_word = std::min(first_open_.load(std::memory_order_relaxed), words_ - 1);
  int first_open = -1;
  int run_first = 0;
  int run_length = 0;  // free slots just before `slot`
  for (int w = start_word; w < words_; ++w) {
    const uint64_t free_bits = ~taken_[w].load(std::memory_order_relaxed);
    if (free_bits != 0 && first_open < 0) first_open = w;
    int bit = 0;
    while (bit < kWordBits) {
      const uint64_t rest = free_bits >> bit;
      if ((rest & 1) == 0) {
        run_length = 0;
        bit += rest == 0 ? kWordBits : std::countr_zero(rest);
        continue;
      }
      if (run_length == 0) run_first = w * kWordBits + bit;
      const int here = std::min(std::countr_one(rest), kWordBits - bit);
      run_length += here;
      bit += here;
      if (run_length >= count) {
        if (claim_run(run_first, count)) {
          for (int i = 0; i < count; ++i) out[i] = run_first + i;
          if (first_open > start_word) first_open_.store(first_open, std::memory_order_relaxed);
          return true;
        }
        run_length = 0;  // somebody was quicker; look on behind this run
      }
    }
  }
  return false;
}

// The reservation guarantees that enough bits are free at every moment, so going round the words
// ends; a round without success means that other threads claimed or freed meanwhile.
void KvSlotBitmap::allocate_scattered(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  int found = 0;
  while (found < count) {
    for (int w = 0; w < words_ && found < count; ++w) {
      uint64_t seen = taken_[w].load(std::memory_order_relaxed);
      uint64_t mine = 0;
      do {
        mine = 0;
        uint64_t free_bits = ~seen;
        for (int need = count - found; need > 0 && free_bits != 0; --need) {
          mine |= free_bits & -free_bits;
          free_bits &= free_bits - 1;
        }
      } while (mine != 0 &&
               !taken_[w].compare_exchange_weak(seen, seen | mine, std::memory_order_acq_rel,
                                                std::memory_order_relaxed));
      for (; mine != 0; mine &= mine - 1) {
        out[found++] = w * kWordBits + std::countr_zero(mine);
      }
    }
  }
  // One round yields ascending slots; only when racing threads forced several is there work here.
  if (!std::is_sorted(out.begin(), out.end())) std::sort(out.begin(), out.end());
}

Status KvSlotBitmap::free(std::span<const int32_t> slots) {
  for (const int32_t slot : slots) {
    if (slot < 0 || slot >= slots_) return refuse(slot, "does not exist; it cannot be freed");
    if (!is_taken(slot)) return refuse(slot, "is not taken; it cannot be freed again");
  }
  int freed = 0;
  int32_t refused = -1;
  for (size_t i = 0; i < slots.size();) {
    const int word = slots[i] / kWordBits;
    uint64_t mask = 0;
    for (; i < slots.size() && slots[i] / kWordBits == word; ++i) {
      const uint64_t bit = uint64_t{1} << (slots[i] % kWordBits);
      if ((mask & bit) != 0) refused = slots[i];
      mask |= bit;
    }
    // A bit that is clear already was freed by somebody since the check above, or is named twice.
    const uint64_t before = taken_[word].fetch_and(~mask, std::memory_order_release);
    const uint64_t cleared = before & mask;
    if (cleared != mask) refused = word * kWordBits + std::countr_zero(mask & ~before);
    freed += std::popcount(cleared);
    int open = first_open_.load(std::memory_order_relaxed);
    if (word < open) first_open_.store(word, std::memory_order_relaxed);
  }
  available_.fetch_add(freed, std::memory_order_release);
  if (refused >= 0) return refuse(refused, "was freed twice");
  return Status::okay();
}

}  // namespace sapwood
