// The draft tree, its layout as rows and the slots they lie in, against plain models: lists of
// parents, paths walked by hand, a set of numbers.
#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "bytes.h"
#include "fuzz_target.h"
#include "memory/kv_slot_bitmap.h"
#include "promise.h"
#include "tree/draft_tree.h"
#include "tree/row_layout.h"

namespace {

using namespace sapwood;

constexpr int kSlots = 150;
constexpr int kMaxRows = DraftTree::kCapacity + 1;

struct PlainNode {
  int parent;
  int32_t token;
  float acceptance;
};

struct Plain {
  std::vector<PlainNode> nodes;

  std::vector<int> path(int node) const {
    std::vector<int> path;
    for (; node != DraftTree::kRoot; node = nodes[static_cast<size_t>(node)].parent) {
      path.insert(path.begin(), node);
    }
    return path;
  }
  std::vector<int> children(int node) const {
    std::vector<int> children;
    for (size_t v = 0; v < nodes.size(); ++v) {
      if (nodes[v].parent == node) children.push_back(static_cast<int>(v));
    }
    return children;
  }
  bool may_add(int parent, int32_t token) const {
    if (parent < DraftTree::kRoot || parent >= static_cast<int>(nodes.size())) return false;
    if (nodes.size() == DraftTree::kCapacity) return false;
    for (const int child : children(parent)) {
      if (nodes[static_cast<size_t>(child)].token == token) return false;
    }
    return true;
  }
};

void check_children(const DraftTree& tree, const Plain& plain, int node) {
  std::vector<int> listed;
  for (int c = tree.first_child(node); c != DraftTree::kNone; c = tree.next_sibling(c)) {
    listed.push_back(c);
    require(listed.size() <= plain.nodes.size(), "a list of children ends");
    require(tree.find_child(node, tree.token(c)) == c, "a child is found by its token");
  }
  require(listed == plain.children(node), "children are listed in the order they were added");
}

void check_tree(const DraftTree& tree, const Plain& plain) {
  require(tree.size() == static_cast<int>(plain.nodes.size()),
          "the tree has the nodes it was given");
  check_children(tree, plain, DraftTree::kRoot);
  double expected = 1;
  for (int v = 0; v < tree.size(); ++v) {
    const PlainNode& node = plain.nodes[static_cast<size_t>(v)];
    const std::vector<int> path = plain.path(v);
    require(tree.token(v) == node.token && tree.parent(v) == node.parent,
            "a node is what was added");
    require(tree.depth(v) == static_cast<int>(path.size()), "a depth is the length of the path");
    std::array<int, DraftTree::kCapacity> written;
    require(tree.path(v, written) == tree.depth(v) &&
                std::equal(path.begin(), path.end(), written.begin()),
            "a path leads from the root to the node");
    float product = 1;
    for (const int ancestor : path)
      product *= plain.nodes[static_cast<size_t>(ancestor)].acceptance;
    require(tree.path_acceptance(v) == product, "acceptances multiply along the path");
    expected += static_cast<double>(product);
    for (int u = 0; u < tree.size(); ++u) {
      require(tree.is_ancestor_or_self(u, v) == (std::ranges::count(path, u) > 0),
              "the mask holds the path and nothing else");
    }
    check_children(tree, plain, v);
  }
  require(tree.expected_tokens() == expected, "a step's expected tokens are the sum");
}

void check_layout(RowLayout& layout, const DraftTree& tree, const Plain& plain,
                  std::span<const int32_t> context, std::span<const int32_t> slots) {
  const RowBatch batch = layout.tree_rows(7, tree, context, slots);
  require(batch.rows() == tree.size() + 1, "a row a node, and the root's");
  for (int row = 0; row < batch.rows(); ++row) {
    const size_t r = static_cast<size_t>(row);
    std::vector<int32_t> seen = {slots[0]};
    const std::vector<int> path = row == 0 ? std::vector<int>() : plain.path(row - 1);
    for (const int node : path) seen.push_back(slots[static_cast<size_t>(node) + 1]);
    const auto begin = batch.path_slots.begin() + batch.path_begin[r];
    const auto end = batch.path_slots.begin() + batch.path_end[r];
    require(std::equal(begin, end, seen.begin(), seen.end()), "a row sees its ancestors' slots");
    require(batch.positions[r] == static_cast<int>(context.size() + path.size()),
            "a position is prefix + depth - 1, never a number");
    require(batch.tokens[r] == (row == 0 ? 7 : plain.nodes[r - 1].token), "a row has its token");
    require(batch.slots[r] == slots[r] && batch.output_rows[r] == row, "a row has its own slot");
  }
}

// Slots beside a set of numbers.
class Slots {
 public:
  bool allocate(int count, std::vector<int32_t>& out) {
    out.assign(static_cast<size_t>(count), -1);
    const bool fits = count <= kSlots - static_cast<int>(held_.size());
    require(bitmap_.allocate(out) == fits, "slots are refused only when there are too few");
    if (!fits) return false;
    require(std::ranges::is_sorted(out), "slots ascend");
    for (const int32_t slot : out) {
      require(slot >= 0 && slot < kSlots && held_.insert(slot).second, "a slot has one owner");
    }
    most_ = std::max(most_, held_.size());
    return true;
  }
  void free(std::span<const int32_t> slots) {
    require(bitmap_.free(slots).ok(), "a slot that is held can be freed");
    for (const int32_t slot : slots) held_.erase(slot);
  }
  void free_again(int32_t slot) {
    if (!held_.contains(slot)) require(!bitmap_.free({&slot, 1}).ok(), "a free slot is refused");
  }
  void check() const {
    require(bitmap_.taken() == static_cast<int>(held_.size()), "the count is right");
    require(bitmap_.peak() == static_cast<int>(most_), "the peak is the most ever taken");
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      require(bitmap_.is_taken(slot) == held_.contains(slot), "a bit is set for each slot held");
    }
  }

 private:
  KvSlotBitmap bitmap_{kSlots};
  std::set<int32_t> held_;
  size_t most_ = 0;
};

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint32_t i = 0; i < 8; ++i) seeds.push_back(random_bytes(i, 60 + 100 * i));
  seeds.push_back(std::string(300, '\0'));  // a chain
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 1200));
  DraftTree tree;
  Plain plain;
  RowLayout layout(kMaxRows);
  Slots slots;
  std::vector<int32_t> context;  // slots of the text so far
  while (!bytes.empty()) {
    const int operation = bytes.below(16);
    if (operation < 11) {  // grow, mostly at the end
      const int back = bytes.below(operation < 6 ? 2 : 40);
      const int parent = tree.size() - 1 - back;
      const int32_t token = bytes.below(5);
      const float acceptance = static_cast<float>(bytes.next()) / 255.f;
      const bool allowed = plain.may_add(parent, token);
      const int node = tree.add(parent, token, -1.f, -1.f, acceptance);
      require((node != DraftTree::kNone) == allowed, "a node is refused for a reason");
      if (allowed) {
        require(node == tree.size() - 1, "nodes are numbered in order");
        plain.nodes.push_back({parent, token, acceptance});
      }
    } else if (operation == 11) {
      const int nodes = bytes.below(tree.size() + 3);
      tree.truncate(nodes);
      plain.nodes.resize(std::min<size_t>(plain.nodes.size(), static_cast<size_t>(nodes)));
    } else if (operation == 12) {
      tree.clear();
      plain.nodes.clear();
    } else if (operation == 13) {
      slots.free_again(bytes.below(kSlots));
    } else {  // a step: rows for all, of which a path of the tree stays
      std::vector<int32_t> mine;
      if (slots.allocate(tree.size() + 1, mine)) {
        check_layout(layout, tree, plain, context, mine);
        const int leaf = bytes.below(tree.size() + 1) - 1;
        const size_t kept = plain.path(leaf).size() + 1;
        context.insert(context.end(), mine.begin(), mine.begin() + static_cast<long>(kept));
        slots.free(std::span<const int32_t>(mine).subspan(kept));
      } else {  // the text is cut
        const size_t left = static_cast<size_t>(bytes.below(static_cast<int>(context.size()) + 1));
        slots.free(std::span<const int32_t>(context).subspan(left));
        context.resize(left);
      }
      slots.check();
    }
  }
  check_tree(tree, plain);
  return 0;
}
