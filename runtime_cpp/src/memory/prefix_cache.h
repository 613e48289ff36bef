// A KV store that keeps the prefixes of earlier texts: who begins like one of them computes only
// the rest, and nothing is copied, since attention walks lists of slots.
//
//   auto cache = std::make_shared<PrefixCache>(std::move(kv_store));
//   PrefixSlots text(cache, context_length);
//   const int known = text.begin(prompt);           // slots()[0 .. known) hold that much of it
//   if (!cache->allocate(new_slots)) ...            // evicts what nobody holds, longest unused
//   first
//   ... compute the rest of the prompt into new_slots ...
//   text.append(new_slots);
//   SAPWOOD_TRY(text.share(prompt));                // from now on others may begin with it
//
// Several texts may live in one cache; what one of them holds is never evicted. One thread at a
// time. Nothing is allocated after the start.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "memory/kv_slot_bitmap.h"
#include "memory/kv_store.h"
#include "memory/prefix_trie.h"

namespace sapwood {

class PrefixCache {
 public:
  explicit PrefixCache(std::unique_ptr<KvStore> kv);

  KvStore& kv() { return *kv_; }
  int slots() const { return bitmap_.slots(); }
  int taken() const { return bitmap_.taken(); }  // by living texts and kept prefixes
  int stored() const { return trie_.stored(); }  // of these, in prefixes that texts may share
  bool is_taken(int slot) const { return bitmap_.is_taken(slot); }
  // Every slot that is taken is stored, or was given out and not yet given back.
  bool is_whole() const { return bitmap_.taken() == trie_.stored() + given_out_; }

  // Fills `out` with that many slots in ascending order, contiguous where possible. Prefixes that
  // nobody holds give way. All or nothing; false: living texts hold too many.
  [[nodiscard]] bool allocate(std::span<int32_t> out);
  // Gives back what allocate() gave and no text has shared since.
  Status free(std::span<const int32_t> slots);

  // As many free slots as `count`, if evicting can do it; how many there are now.
  int make_room(int count);
  // Evicts all that nobody holds.
  void forget() { make_room(slots()); }

 private:
  friend class PrefixSlots;

  std::unique_ptr<KvStore> kv_;
  KvSlotBitmap bitmap_;
  PrefixTrie trie_;
  int given_out_ = 0;
  std::vector<int32_t> evicted_;     // room for as many as go at once
  std::vector<int32_t> duplicates_;  // room for all slots
};

// The slots of one text, in order: first those that it shares, then its own.
class PrefixSlots {
 public:
  // Room for the slots of `most` tokens is made here.
  PrefixSlots(std::shared_ptr<PrefixCache> cache, int most);
  ~PrefixSlots();
  PrefixSlots(const PrefixSlots&) = delete;
  PrefixSlots& operator=(const PrefixSlots&) = delete;

  std::span<const int32_t> slots() const { return slots_; }
  int size() const { return static_cast<int>(slots_.size()); }
  int shared() const { return cache_->trie_.depth(held_); }

  // Another text: lets the present one go, its own slots are free, and begins with the longest
  // stored prefix of `tokens` (at most `most`). How many tokens that is.
  int begin(std::span<const int32_t> tokens);
  // Slots that the cache gave out, for the tokens that follow.
  void append(std::span<const int32_t> slots);
  // Forgets all beyond the first `count`; what was shared stays stored.
  void truncate(int count);
  // The first slots hold these tokens (at most size() of them): stores what is not stored yet.
  // Where another text was quicker, its slots take the place of this one's, which are free again.
  void share(std::span<const int32_t> tokens);

 private:
  const std::shared_ptr<PrefixCache> cache_;
  PrefixTrie::Node held_ = PrefixTrie::kRoot;
  std::vector<int32_t> slots_;
};

}  // namespace sapwood
