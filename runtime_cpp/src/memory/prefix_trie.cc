#include "memory/prefix_trie.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace sapwood {

// Half of the table stays empty, so that a search ends soon.
PrefixTrie::PrefixTrie(int slots)
    : entries_(static_cast<size_t>(std::max(slots, 0))),
      table_(std::bit_ceil(2 * entries_.size() + 2), kRoot),
      mask_(table_.size() - 1) {}

PrefixTrie::Node PrefixTrie::acquire(std::span<const int32_t> tokens, std::span<int32_t> slots) {
  assert(slots.size() >= tokens.size());
  Node node = kRoot;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Node child = find(node, tokens[i]);
    if (child == kRoot) break;
    slots[i] = node = child;
  }
  hold(node);
  return node;
}

PrefixTrie::Node PrefixTrie::extend(Node held, std::span<const int32_t> tokens,
                                    std::span<int32_t> slots, std::span<int32_t> duplicates,
                                    int* count) {
  assert(slots.size() == tokens.size() && duplicates.size() >= tokens.size());
  *count = 0;
  Node node = held;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Node child = find(node, tokens[i]);
    if (child != kRoot) {
      duplicates[static_cast<size_t>((*count)++)] = slots[i];
      slots[i] = child;
    } else {
      child = slots[i];
      Entry& entry = entries_[at(child)];
      assert(entry.depth == 0 && "a slot stands for one token");
      entry = {.token = tokens[i], .parent = node, .depth = depth(node) + 1};
      insert(child);
      enlist(child, true);
      ++stored_;
      if (node != kRoot) {
        if (idle(node)) delist(node);
        ++entries_[at(node)].children;
      }
    }
    node = child;
  }
  hold(node);
  release(held);
  return node;
}

void PrefixTrie::hold(Node node) {
  if (node == kRoot) return;
  if (idle(node)) delist(node);
  ++entries_[at(node)].references;
}

void PrefixTrie::release(Node node) {
  if (node == kRoot) return;
  Entry& entry = entries_[at(node)];
  assert(entry.references > 0 && "released more often than held");
  --entry.references;
  if (idle(node)) enlist(node, true);
}

PrefixTrie::Node PrefixTrie::shorten(Node held, int depth) {
  Node node = held;
  while (this->depth(node) > depth) node = entries_[at(node)].parent;
  if (node == held) return held;
  hold(node);
  release(held);
  return node;
}

int PrefixTrie::evict(std::span<int32_t> slots) {
  size_t taken = 0;
  while (taken < slots.size() && oldest_ != kRoot) {
    const Node node = oldest_;
    Entry& entry = entries_[at(node)];
    const Node parent = entry.parent;
    delist(node);
    erase(node);
    entry = Entry();
    --stored_;
    slots[taken++] = node;
    if (parent == kRoot) continue;
    --entries_[at(parent)].children;
    // A branch goes from its end inwards before another one is touched.
    if (idle(parent)) enlist(parent, false);
  }
  return static_cast<int>(taken);
}

// ---- (parent, token) -> node --------------------------------------------------------------------

// Fibonacci hashing (Knuth, The Art of Computer Programming 3, section 6.4).
size_t PrefixTrie::home(Node parent, int32_t token) const {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(parent)) << 32 | static_cast<uint32_t>(token);
  return static_cast<size_t>((key * 0x9e3779b97f4a7c15) >> 24) & mask_;
}

PrefixTrie::Node PrefixTrie::find(Node parent, int32_t token) const {
  for (size_t i = home(parent, token); table_[i] != kRoot; i = (i + 1) & mask_) {
    const Entry& entry = entries_[at(table_[i])];
    if (entry.parent == parent && entry.token == token) return table_[i];
  }
  return kRoot;
}

void PrefixTrie::insert(Node node) {
  const Entry& entry = entries_[at(node)];
  size_t i = home(entry.parent, entry.token);
  while (table_[i] != kRoot) i = (i + 1) & mask_;
  table_[i] = node;
}

// Moves back what stands behind the gap and would not be found across it (Knuth, algorithm 6.4R).
void PrefixTrie::erase(Node node) {
  size_t gap = home(entries_[at(node)].parent, entries_[at(node)].token);
  while (table_[gap] != node) gap = (gap + 1) & mask_;
  for (size_t i = (gap + 1) & mask_; table_[i] != kRoot; i = (i + 1) & mask_) {
    const Entry& entry = entries_[at(table_[i])];
    const size_t wanted = home(entry.parent, entry.token);
    if (((i - wanted) & mask_) >= ((i - gap) & mask_)) {
      table_[gap] = table_[i];
      gap = i;
    }
  }
  table_[gap] = kRoot;
}

// ---- what may be evicted, in order of last use --------------------------------------------------

void PrefixTrie::enlist(Node node, bool newest) {
  Entry& entry = entries_[at(node)];
  entry.older = newest ? newest_ : kRoot;
  entry.newer = newest ? kRoot : oldest_;
  (entry.older != kRoot ? entries_[at(entry.older)].newer : oldest_) = node;
  (entry.newer != kRoot ? entries_[at(entry.newer)].older : newest_) = node;
  ++evictable_;
}

void PrefixTrie::delist(Node node) {
  const Entry& entry = entries_[at(node)];
  (entry.older != kRoot ? entries_[at(entry.older)].newer : oldest_) = entry.newer;
  (entry.newer != kRoot ? entries_[at(entry.newer)].older : newest_) = entry.older;
  --evictable_;
}

}  // namespace sapwood
