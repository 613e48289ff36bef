// The draft: a tree of guessed tokens beyond the committed text, as a structure of arrays.
//
// The root is the last committed token and not a node. Nodes are numbered in the order they were
// added, parents first, so any prefix of the numbering is a tree too and `truncate` is free.
// Nothing here touches a tensor or allocates.
//
//   DraftTree tree;
//   int a = tree.add(DraftTree::kRoot, token_a, log_q_a, log_q_a, 0.7f);
//   int b = tree.add(a, token_b, log_q_b, log_q_b, 0.5f);   // depth 2, path acceptance 0.35
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sapwood {

class DraftTree {
 public:
  static constexpr int kCapacity = 256;
  static constexpr int kRoot = -1;
  static constexpr int kNone = -2;  // no such node
  using Mask = std::array<uint64_t, kCapacity / 64>;

  void clear() {
    size_ = 0;
    root_first_child_ = root_last_child_ = kNone;
  }
  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kCapacity; }

  // Adds a child of `parent` (kRoot or an existing node) and returns its number, or kNone when the
  // tree is full, the parent does not exist, or the parent already has a child with this token.
  // `log_q`: the drafter's own log probability of the token at its place. `log_q_kept`: the same
  // after truncation and renormalisation, the law it was drawn from (MATH.md, section 3).
  // `acceptance`: the predicted probability that the target picks it, given that its parent stands.
  int add(int parent, int32_t token, float log_q, float log_q_kept, float acceptance);

  // Keeps the first `nodes` nodes.
  void truncate(int nodes);

  int32_t token(int node) const { return token_[node]; }
  int parent(int node) const { return parent_[node]; }
  int depth(int node) const { return node == kRoot ? 0 : depth_[node]; }  // the root's children: 1
  float log_q(int node) const { return log_q_[node]; }
  float log_q_kept(int node) const { return log_q_kept_[node]; }
  float acceptance(int node) const { return acceptance_[node]; }
  float path_acceptance(int node) const {  // product over the path, A(v); 1 for the root
    return node == kRoot ? 1.f : path_acceptance_[node];
  }
  int max_depth() const;
  double expected_tokens() const;  // of a step: 1 + sum of the path acceptances

  std::span<const int32_t> tokens() const { return {token_.data(), static_cast<size_t>(size_)}; }

  // Children in the order they were added: for (c = first_child(v); c != kNone; c =
  // next_sibling(c)).
  int first_child(int node) const { return node == kRoot ? root_first_child_ : first_child_[node]; }
  int next_sibling(int node) const { return next_sibling_[node]; }
  int find_child(int node, int32_t token) const;  // kNone if there is none

  // Bit v set: v is the node itself or one of its ancestors.
  const Mask& path_mask(int node) const { return path_mask_[node]; }
  bool is_ancestor_or_self(int ancestor, int node) const {
    return ancestor == kRoot || ((path_mask_[node][ancestor / 64] >> (ancestor % 64)) & 1) != 0;
  }

  // Writes the nodes from the root's child down to `node` and returns how many: depth(node).
  // `out` holds at least that many.
  int path(int node, std::span<int> out) const;

  // For people: one line a node, indented by depth. `name` turns a token id into text; without it
  // ids are shown.
  using TokenName = std::function<std::string(int32_t)>;
  std::string to_text(const TokenName& name = {}) const;

  // {"nodes":[{"token":..,"parent":..,"depth":..,"log_q":..,"log_q_kept":..,"acceptance":..,
  //   "path_acceptance":..}, ...]}; an infinite log is written as null. parent -1 is the root.
  std::string to_json() const;

 private:
  int size_ = 0;
  int root_first_child_ = kNone;
  int root_last_child_ = kNone;
  std::array<int32_t, kCapacity> token_;
  std::array<int16_t, kCapacity> parent_;
  std::array<int16_t, kCapacity> depth_;
  std::array<int16_t, kCapacity> first_child_;
  std::array<int16_t, kCapacity> last_child_;
  std::array<int16_t, kCapacity> next_sibling_;
  std::array<float, kCapacity> log_q_;
  std::array<float, kCapacity> log_q_kept_;
  std::array<float, kCapacity> acceptance_;
  std::array<float, kCapacity> path_acceptance_;
  std::array<Mask, kCapacity> path_mask_;
};

}  // namespace sapwood
