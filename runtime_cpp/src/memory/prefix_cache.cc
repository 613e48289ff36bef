#include "memory/prefix_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sapwood {
namespace {

// Slots are evicted so many at once, so that a text that takes their place lies in few pieces; no
// more than this part of a small store.
constexpr int kMostAtOnce = 64;
constexpr int kPartAtOnce = 32;

}  // namespace

PrefixCache::PrefixCache(std::unique_ptr<KvStore> kv)
    : kv_(std::move(kv)),
      bitmap_(kv_->slots()),
      trie_(kv_->slots()),
      evicted_(static_cast<size_t>(std::clamp(kv_->slots() / kPartAtOnce, 1, kMostAtOnce))),
      duplicates_(static_cast<size_t>(kv_->slots())) {}

bool PrefixCache::allocate(std::span<int32_t> out) {
  const int count = static_cast<int>(out.size());
  if (make_room(count) < count || !bitmap_.allocate(out)) return false;
  given_out_ += count;
  return true;
}

Status PrefixCache::free(std::span<const int32_t> slots) {
  SAPWOOD_TRY(bitmap_.free(slots));
  given_out_ -= static_cast<int>(slots.size());
  return Status::okay();
}

int PrefixCache::make_room(int count) {
  while (bitmap_.available() < count) {
    const size_t gone = static_cast<size_t>(trie_.evict(evicted_));
    if (gone == 0) break;
    const Status freed = bitmap_.free(std::span<const int32_t>(evicted_).first(gone));
    assert(freed.ok() && "a stored slot is taken");
    (void)freed;
  }
  return bitmap_.available();
}

// ---- one text -----------------------------------------------------------------------------------

PrefixSlots::PrefixSlots(std::shared_ptr<PrefixCache> cache, int most) : cache_(std::move(cache)) {
  slots_.reserve(static_cast<size_t>(most));
}

PrefixSlots::~PrefixSlots() { truncate(0); }

int PrefixSlots::begin(std::span<const int32_t> tokens) {
  assert(tokens.size() <= slots_.capacity());
  const PrefixTrie::Node before = std::exchange(held_, PrefixTrie::kRoot);
  const size_t own = static_cast<size_t>(cache_->trie_.depth(before));
  if (own < slots_.size()) {
    const Status freed = cache_->free(std::span<const int32_t>(slots_).subspan(own));
    assert(freed.ok() && "a text's own slots are taken");
    (void)freed;
  }
  slots_.resize(tokens.size());
  held_ = cache_->trie_.acquire(tokens, slots_);
  cache_->trie_.release(before);
  slots_.resize(static_cast<size_t>(shared()));
  return size();
}

void PrefixSlots::append(std::span<const int32_t> slots) {
  assert(slots_.size() + slots.size() <= slots_.capacity());
  slots_.insert(slots_.end(), slots.begin(), slots.end());
}

void PrefixSlots::truncate(int count) {
  if (count >= size()) return;
  const int own = std::max(count, shared());
  const Status freed =
      cache_->free(std::span<const int32_t>(slots_).subspan(static_cast<size_t>(own)));
  assert(freed.ok() && "a text's own slots are taken");
  (void)freed;
  held_ = cache_->trie_.shorten(held_, count);
  slots_.resize(static_cast<size_t>(count));
}

void PrefixSlots::share(std::span<const int32_t> tokens) {
  assert(tokens.size() <= slots_.size());
  const size_t known = static_cast<size_t>(shared());
  if (tokens.size() <= known) return;
  const size_t count = tokens.size() - known;
  int duplicates = 0;
  held_ = cache_->trie_.extend(held_, tokens.subspan(known),
                               std::span<int32_t>(slots_).subspan(known, count),
                               cache_->duplicates_, &duplicates);
  cache_->given_out_ -= static_cast<int>(count) - duplicates;
  const Status freed = cache_->free(
      std::span<const int32_t>(cache_->duplicates_).first(static_cast<size_t>(duplicates)));
  assert(freed.ok() && "a text's own slots are taken");
  (void)freed;
}

}  // namespace sapwood
