// Committed prefixes and the KV slots that hold them, so that a request which begins like an
// earlier one computes only the rest.
//
//   PrefixTrie trie(2048);
//   std::vector<int32_t> slots(prompt.size());
//   PrefixTrie::Node held = trie.acquire(prompt, slots);       // the longest prefix that is stored
//   const int known = trie.depth(held);                        // slots[0 .. known) hold it
//   ... prefill prompt[known ..) into slots of the bitmap ...
//   held = trie.extend(held, prompt.subspan(known), its_slots);  // now others may have it
//   ...
//   trie.release(held);
//
// A node is one token after one prefix, and has one slot: a token's K and V depend on nothing but
// the tokens up to it, so equal prefixes have equal bits. Nodes count who holds them; holding one
// keeps the whole prefix. What nobody holds stays until evict() gives the slots back, longest
// unused first.
//
// All memory is allocated at the start. One thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sapwood {

class PrefixTrie {
 public:
  using Node = int32_t;  // the slot of the node's token
  static constexpr Node kRoot = -1;

  explicit PrefixTrie(int slots);  // as many as the bitmap that the slots come from

  // The longest stored prefix of `tokens` (at least as much room in `slots`), which is held from
  // now on; slots[0 .. depth) are its slots in order. kRoot when nothing is stored.
  Node acquire(std::span<const int32_t> tokens, std::span<int32_t> slots);

  // Stores `tokens` after `held`, with their K and V in `slots` (as many, none in the trie yet),
  // moves the hold to the last of them and returns it. A token that somebody else has stored
  // meanwhile keeps its older slot: slots[i] is then replaced by that one, and the caller's own is
  // appended to `duplicates` (room for as many), for the caller to free. Returns through `*count`
  // how many.
  Node extend(Node held, std::span<const int32_t> tokens, std::span<int32_t> slots,
              std::span<int32_t> duplicates, int* count);

  // One more holder, one fewer. Of kRoot: nothing.
  void hold(Node node);
  void release(Node node);
  // Moves a hold to the node `depth` tokens from the start, if `held` is deeper; returns it.
  Node shorten(Node held, int depth);

  // Takes up to slots.size() nodes out that nobody holds and nothing follows: the end that was
  // longest unused, then what it leaves without anything that follows. Their slots are the caller's
  // to free. How many there were.
  int evict(std::span<int32_t> slots);

  int depth(Node node) const { return node == kRoot ? 0 : entries_[at(node)].depth; }
  int references(Node node) const { return node == kRoot ? 0 : entries_[at(node)].references; }
  int stored() const { return stored_; }        // nodes in all
  int evictable() const { return evictable_; }  // those that evict() would take at once

 private:
  struct Entry {
    int32_t token = 0;
    Node parent = kRoot;
    int depth = 0;  // 0: not in the trie
    int references = 0;
    int children = 0;
    Node older = kRoot, newer = kRoot;  // in the list of those that may be evicted
  };

  static size_t at(Node node) { return static_cast<size_t>(node); }
  size_t home(Node parent, int32_t token) const;
  Node find(Node parent, int32_t token) const;
  void insert(Node node);
  void erase(Node node);
  void enlist(Node node, bool newest);
  void delist(Node node);
  bool idle(Node node) const {
    return entries_[at(node)].references == 0 && entries_[at(node)].children == 0;
  }

  std::vector<Entry> entries_;  // [slots], by slot
  std::vector<Node> table_;     // open addressing by (parent, token); kRoot: empty
  size_t mask_;
  Node oldest_ = kRoot, newest_ = kRoot;
  int stored_ = 0;
  int evictable_ = 0;
};

}  // namespace sapwood
