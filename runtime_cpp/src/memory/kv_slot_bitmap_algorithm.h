// The definitions of BasicKvSlotBitmap, for those who instantiate it: kv_slot_bitmap.cc, and the
// test that interleaves it.
#pragma once

#include <algorithm>
#include <bit>
#include <string>

#include "memory/kv_slot_bitmap.h"

namespace sapwood {
namespace kv_slots {

inline constexpr int kWordBits = 64;

// `count` (1 .. 64) set bits from bit `first`.
inline uint64_t mask_of(int first, int count) {
  return (~uint64_t{0} >> (kWordBits - count)) << first;
}

// Calls visit(word, mask) for the bits of slots first .. first + count, word by word, while it
// returns true; the first slot it was not called for, or returned false for.
template <typename Visit>
int for_words(int first, int count, Visit visit) {
  int slot = first;
  while (slot < first + count) {
    const int bit = slot % kWordBits;
    const int here = std::min(kWordBits - bit, first + count - slot);
    if (!visit(slot / kWordBits, mask_of(bit, here))) return slot;
    slot += here;
  }
  return slot;
}

// A slot that does not exist is in no word.
inline bool is_in_word(int32_t slot, int word) {
  return static_cast<uint32_t>(slot) / kWordBits == static_cast<uint32_t>(word);
}

inline Status refuse(int32_t slot, const char* why) {
  return Status(Code::kInvalidArgument, "KV slot " + std::to_string(slot) + ' ' + why);
}

}  // namespace kv_slots

template <template <typename> class Atomic>
BasicKvSlotBitmap<Atomic>::BasicKvSlotBitmap(int slots)
    : slots_(std::max(slots, 0)),
      words_((slots_ + kv_slots::kWordBits - 1) / kv_slots::kWordBits),
      claimed_(std::make_unique<Atomic<uint64_t>[]>(static_cast<size_t>(words_))),
      owned_(std::make_unique<Atomic<uint64_t>[]>(static_cast<size_t>(words_))),
      available_(slots_) {
  for (int w = 0; w < words_; ++w) {
    claimed_[w].store(~valid_bits(w), std::memory_order_relaxed);
  }
}

// Bits of a word that stand for slots; the rest of the last word is never free.
template <template <typename> class Atomic>
uint64_t BasicKvSlotBitmap<Atomic>::valid_bits(int word) const {
  return kv_slots::mask_of(0, std::min(slots_ - word * kv_slots::kWordBits, kv_slots::kWordBits));
}

template <template <typename> class Atomic>
bool BasicKvSlotBitmap<Atomic>::is_taken(int slot) const {
  if (slot < 0 || slot >= slots_) return false;
  const uint64_t word = owned_[slot / kv_slots::kWordBits].load(std::memory_order_acquire);
  return ((word >> (slot % kv_slots::kWordBits)) & 1) != 0;
}

template <template <typename> class Atomic>
bool BasicKvSlotBitmap<Atomic>::reserve(int count) {
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
  return true;
}

template <template <typename> class Atomic>
bool BasicKvSlotBitmap<Atomic>::allocate(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  if (count == 0) return true;
  if (!reserve(count)) return false;
  const int first = claim_first_run(count);
  if (first >= 0) {
    own_run(first, count);
    for (int i = 0; i < count; ++i) out[i] = first + i;
  } else {
    claim_scattered(out);
  }
  return true;
}

template <template <typename> class Atomic>
int BasicKvSlotBitmap<Atomic>::allocate_run(int count) {
  if (count < 1 || !reserve(count)) return -1;
  const int first = claim_first_run(count);
  if (first >= 0) {
    own_run(first, count);
  } else {
    available_.fetch_add(count, std::memory_order_release);
  }
  return first;
}

// Claims bits first .. first + count, which may span words; on meeting a claimed one, undoes its
// own.
template <template <typename> class Atomic>
bool BasicKvSlotBitmap<Atomic>::claim_run(int first, int count) {
  const int end = kv_slots::for_words(first, count, [this](int word, uint64_t mask) {
    uint64_t seen = claimed_[word].load(std::memory_order_relaxed);
    do {
      if ((seen & mask) != 0) return false;
    } while (!claimed_[word].compare_exchange_weak(seen, seen | mask, std::memory_order_acq_rel,
                                                   std::memory_order_relaxed));
    return true;
  });
  if (end == first + count) return true;
  kv_slots::for_words(first, end - first, [this](int word, uint64_t mask) {
    claimed_[word].fetch_and(~mask, std::memory_order_release);
    return true;
  });
  return false;
}

template <template <typename> class Atomic>
void BasicKvSlotBitmap<Atomic>::own_run(int first, int count) {
  kv_slots::for_words(first, count, [this](int word, uint64_t mask) {
    owned_[word].fetch_or(mask, std::memory_order_release);
    return true;
  });
}

// First fit: walks the free runs in order, joining runs that meet at a word border. -1 when there
// is none.
template <template <typename> class Atomic>
int BasicKvSlotBitmap<Atomic>::claim_first_run(int count) {
  const int start_word = std::min(first_open_.load(std::memory_order_relaxed), words_ - 1);
  int first_open = -1;
  int run_first = 0;
  int run_length = 0;  // free slots just before `bit`
  for (int w = start_word; w < words_; ++w) {
    const uint64_t free_bits = ~claimed_[w].load(std::memory_order_relaxed);
    if (free_bits != 0 && first_open < 0) first_open = w;
    int bit = 0;
    while (bit < kv_slots::kWordBits) {
      const uint64_t rest = free_bits >> bit;
      if ((rest & 1) == 0) {
        run_length = 0;
        bit += rest == 0 ? kv_slots::kWordBits : std::countr_zero(rest);
        continue;
      }
      if (run_length == 0) run_first = w * kv_slots::kWordBits + bit;
      const int here = std::min(std::countr_one(rest), kv_slots::kWordBits - bit);
      run_length += here;
      bit += here;
      if (run_length >= count) {
        if (claim_run(run_first, count)) {
          if (first_open > start_word) first_open_.store(first_open, std::memory_order_relaxed);
          return run_first;
        }
        run_length = 0;  // somebody was quicker; look on behind this run
      }
    }
  }
  return -1;
}

// The reservation guarantees that enough bits are free at every moment, so going round the words
// ends; a round without success means that other threads claimed or freed meanwhile.
template <template <typename> class Atomic>
void BasicKvSlotBitmap<Atomic>::claim_scattered(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  int found = 0;
  while (found < count) {
    for (int w = 0; w < words_ && found < count; ++w) {
      uint64_t seen = claimed_[w].load(std::memory_order_relaxed);
      uint64_t mine = 0;
      do {
        mine = 0;
        uint64_t free_bits = ~seen;
        for (int need = count - found; need > 0 && free_bits != 0; --need) {
          mine |= free_bits & -free_bits;
          free_bits &= free_bits - 1;
        }
      } while (mine != 0 &&
               !claimed_[w].compare_exchange_weak(seen, seen | mine, std::memory_order_acq_rel,
                                                  std::memory_order_relaxed));
      if (mine == 0) continue;
      owned_[w].fetch_or(mine, std::memory_order_release);
      for (; mine != 0; mine &= mine - 1) {
        out[found++] = w * kv_slots::kWordBits + std::countr_zero(mine);
      }
    }
  }
  // One round yields ascending slots; only when racing threads forced several is there work here.
  if (!std::is_sorted(out.begin(), out.end())) std::sort(out.begin(), out.end());
}

// Ends this caller's right to the slots of `mask`; the bits that it was the one to clear.
template <template <typename> class Atomic>
uint64_t BasicKvSlotBitmap<Atomic>::disown(int word, uint64_t mask) {
  const uint64_t mine = owned_[word].fetch_and(~mask, std::memory_order_acq_rel) & mask;
  claimed_[word].fetch_and(~mine, std::memory_order_release);
  if (word < first_open_.load(std::memory_order_relaxed)) {
    first_open_.store(word, std::memory_order_relaxed);
  }
  return mine;
}

template <template <typename> class Atomic>
Status BasicKvSlotBitmap<Atomic>::finish_free(int freed, int refused) {
  available_.fetch_add(freed, std::memory_order_release);
  if (refused >= 0) return kv_slots::refuse(refused, "was freed twice");
  return Status::okay();
}

template <template <typename> class Atomic>
Status BasicKvSlotBitmap<Atomic>::free(std::span<const int32_t> slots) {
  // One look at a word for all of its slots that follow each other in the list.
  for (size_t i = 0; i < slots.size();) {
    if (slots[i] < 0 || slots[i] >= slots_) {
      return kv_slots::refuse(slots[i], "does not exist; it cannot be freed");
    }
    const int word = slots[i] / kv_slots::kWordBits;
    const uint64_t owned = owned_[word].load(std::memory_order_acquire);
    for (; i < slots.size() && kv_slots::is_in_word(slots[i], word); ++i) {
      if (((owned >> (slots[i] % kv_slots::kWordBits)) & 1) == 0) {
        return kv_slots::refuse(slots[i], "is not taken; it cannot be freed again");
      }
    }
  }
  int freed = 0;
  int32_t refused = -1;
  for (size_t i = 0; i < slots.size();) {
    const int word = slots[i] / kv_slots::kWordBits;
    uint64_t mask = 0;
    for (; i < slots.size() && kv_slots::is_in_word(slots[i], word); ++i) {
      const uint64_t bit = uint64_t{1} << (slots[i] % kv_slots::kWordBits);
      if ((mask & bit) != 0) refused = slots[i];
      mask |= bit;
    }
    // A bit that is clear already was freed by somebody since the check above, or is named twice.
    const uint64_t mine = disown(word, mask);
    if (mine != mask) refused = word * kv_slots::kWordBits + std::countr_zero(mask & ~mine);
    freed += std::popcount(mine);
  }
  return finish_free(freed, refused);
}

template <template <typename> class Atomic>
Status BasicKvSlotBitmap<Atomic>::free_run(int first, int count) {
  if (first < 0 || count < 0 || count > slots_ - first) {
    return kv_slots::refuse(first, "begins a run that does not exist; it cannot be freed");
  }
  int32_t refused = -1;
  kv_slots::for_words(first, count, [&](int word, uint64_t mask) {
    const uint64_t missing = mask & ~owned_[word].load(std::memory_order_acquire);
    if (missing != 0) refused = word * kv_slots::kWordBits + std::countr_zero(missing);
    return missing == 0;
  });
  if (refused >= 0) return kv_slots::refuse(refused, "is not taken; it cannot be freed again");
  int freed = 0;
  kv_slots::for_words(first, count, [&](int word, uint64_t mask) {
    const uint64_t mine = disown(word, mask);
    if (mine != mask) refused = word * kv_slots::kWordBits + std::countr_zero(mask & ~mine);
    freed += std::popcount(mine);
    return true;
  });
  return finish_free(freed, refused);
}

}  // namespace sapwood
