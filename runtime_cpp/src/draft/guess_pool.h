// Every guess of a step, wherever it came from, and the best tree that can be made of them.
//
// A drafter that looks a level ahead at a time knows more guesses than it will hand over: which of
// them are worth a row of the target is decided at the end, among all of them (EAGLE-2 re-ranks its
// draft likewise: Li et al., 2024, section 4.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/budget.h"
#include "tree/draft_tree.h"

namespace sapwood {

class GuessPool {
 public:
  static constexpr int kCapacity = 4096;
  static constexpr int kRoot = DraftTree::kRoot;
  static constexpr int kNone = DraftTree::kNone;

  struct Guess {
    int32_t token = 0;
    // Pruned: no tree gets it, and it counts nowhere but where the text may go (by_chance).
    bool pruned = false;
    int16_t parent = kRoot;
    int16_t depth = 0;  // the root's children: 1
    int16_t first_child = kNone;
    int16_t last_child = kNone;
    int16_t next_sibling = kNone;
    int16_t node = kNone;   // its number in the drafter's own cache, if it was looked beyond
    int16_t of_class = 0;   // of a Calibration, and
    float probability = 0;  // what was promised there
    float log_q = 0;        // the drafter's own
    float log_q_kept = 0;
    float acceptance = 0;       // predicted, given that its parent stands
    float path_acceptance = 0;  // product over the path
  };

  GuessPool();  // allocates all there is

  void clear();
  int size() const { return size_; }
  // kRoot too: what the text's end is, of path acceptance 1.
  const Guess& at(int guess) const { return guesses_[guess + 1]; }
  Guess& at(int guess) { return guesses_[guess + 1]; }

  // A new child of `parent`, after those it has; kNone if the pool is full. The caller has seen
  // that none of them has this token, and fills in the rest.
  int add(int parent, int32_t token, float acceptance);
  int find_child(int parent, int32_t token) const;
  int child(int parent, int rank) const;  // by the order they were added; kNone beyond the last
  double children_acceptance(int parent) const;

  // The text went on to this guess, which was looked beyond: what is below it stays, numbered anew.
  // nodes: what the numbers in the drafter's cache have become.
  void make_root(int guess, std::span<const int16_t> nodes);

  // Acceptances have been changed: path acceptances follow.
  void refresh();

  // All guesses by falling path acceptance, parents first. Valid until the next call.
  std::span<const int16_t> by_path_acceptance();
  // All guesses, pruned ones too, by how often the text is expected to come by: `least` at least.
  // Parents first. Valid until the next call of this or the above.
  std::span<const int16_t> by_chance(float least);
  // Of these by path acceptance, the first that `budget` takes: all it wants, of which it says how
  // many to keep.
  std::span<const int16_t> select(Budget& budget);

  // Adds the guesses, parents before children, to a tree that holds none of them.
  void build(std::span<const int16_t> selected, DraftTree& tree);

 private:
  int size_ = 0;
  std::vector<Guess> guesses_;  // the root first
  std::vector<int16_t> order_;
  std::vector<float> chance_;    // by guess
  std::vector<int16_t> placed_;  // guess -> node of the tree being built
};

}  // namespace sapwood
