#include "tree/pruning.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace sapwood {
namespace {

int keep_first(int count, const Candidates& candidates, std::span<int> kept) {
  const int n = std::clamp(count, 0, candidates.size());
  for (int i = 0; i < n; ++i) kept[i] = i;
  return n;
}

class Nothing final : public Pruning {
 public:
  explicit Nothing(int width) : width_(width) {}
  std::string_view name() const override { return "none"; }
  int select(const DraftTree&, int, const Candidates& candidates,
             std::span<int> kept) const override {
    return keep_first(width_, candidates, kept);
  }

 private:
  const int width_;
};

class Epsilon final : public Pruning {
 public:
  Epsilon(float epsilon, int width) : log_epsilon_(std::log(epsilon)), width_(width) {}
  std::string_view name() const override { return "epsilon"; }
  int select(const DraftTree&, int, const Candidates& candidates,
             std::span<int> kept) const override {
    int count = 0;
    while (count < std::min(width_, candidates.size()) &&
           candidates.log_q[count] >= candidates.log_q[0] + log_epsilon_) {
      ++count;
    }
    return keep_first(count, candidates, kept);
  }

 private:
  const float log_epsilon_;
  const int width_;
};

class BeamDecay final : public Pruning {
 public:
  BeamDecay(int width, float decay) : width_(width), decay_(decay) {}
  std::string_view name() const override { return "beam-decay"; }
  int select(const DraftTree& tree, int node, const Candidates& candidates,
             std::span<int> kept) const override {
    const float width =
        static_cast<float>(width_) * std::pow(decay_, static_cast<float>(tree.depth(node)));
    return keep_first(std::max(1, static_cast<int>(width)), candidates, kept);
  }

 private:
  const int width_;
  const float decay_;
};

class Shape final : public Pruning {
 public:
  Shape(TreeShape shape, std::string name) : shape_(std::move(shape)), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  int select(const DraftTree& tree, int node, const Candidates& candidates,
             std::span<int> kept) const override {
    return keep_first(children_of(place(tree, node)), candidates, kept);
  }

 private:
  static constexpr int kOutside = DraftTree::kNone;

  int children_of(int place) const {
    if (place == kOutside) return 0;
    const auto nodes = shape_.nodes();
    return static_cast<int>(std::count_if(
        nodes.begin(), nodes.end(), [&](const TreeShape::Node& n) { return n.parent == place; }));
  }

  // The shape's node for a tree's node: child number k of a node is child number k in the shape.
  int place(const DraftTree& tree, int node) const {
    if (node == DraftTree::kRoot) return DraftTree::kRoot;
    const int parent = place(tree, tree.parent(node));
    if (parent == kOutside) return kOutside;
    int number = 0;
    for (int c = tree.first_child(tree.parent(node)); c != node; c = tree.next_sibling(c)) ++number;
    const auto nodes = shape_.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].parent == parent && number-- == 0) return static_cast<int>(i);
    }
    return kOutside;
  }

  const TreeShape shape_;
  const std::string name_;
};

class Diverse final : public Pruning {
 public:
  Diverse(std::unique_ptr<Pruning> inner, float most_shared)
      : inner_(std::move(inner)),
        most_shared_(most_shared),
        name_(std::string(inner_->name()) + "+diverse") {}
  std::string_view name() const override { return name_; }
  int select(const DraftTree& tree, int node, const Candidates& candidates,
             std::span<int> kept) const override {
    const int n = inner_->select(tree, node, candidates, kept);
    int left = 0;
    for (int i = 0; i < n; ++i) {
      const bool likeliest = i == 0;
      if (likeliest || !repeats(tree, node, candidates.tokens[kept[i]])) kept[left++] = kept[i];
    }
    return left;
  }

 private:
  bool repeats(const DraftTree& tree, int node, int32_t token) const {
    std::array<int, DraftTree::kCapacity> own;
    std::array<int, DraftTree::kCapacity> other;
    const int above = node == DraftTree::kRoot ? 0 : tree.path(node, own);
    const int depth = above + 1;
    for (int v = 0; v < tree.size(); ++v) {
      if (tree.depth(v) != depth || tree.token(v) != token || tree.parent(v) == node) continue;
      tree.path(v, other);
      int shared = 1;
      for (int i = 0; i < above; ++i) shared += tree.token(own[i]) == tree.token(other[i]) ? 1 : 0;
      if (static_cast<float>(shared) >= most_shared_ * static_cast<float>(depth)) return true;
    }
    return false;
  }

  const std::unique_ptr<Pruning> inner_;
  const float most_shared_;
  const std::string name_;
};

// Acceptance by rank: of heads that guess each position on their own, and of one that reads what it
// guessed before. Typical figures, published for both kinds; only the layout depends on them.
constexpr std::array<float, 8> kParallelHeads = {0.55f, 0.14f, 0.07f,  0.04f,
                                                 0.03f, 0.02f, 0.015f, 0.01f};
constexpr std::array<float, 4> kAutoregressiveHead = {0.72f, 0.11f, 0.05f, 0.03f};

}  // namespace

int SoftPruning::select(const DraftTree&, int, const Candidates& candidates,
                        std::span<int> kept) const {
  const float ratio = prune_ratio(uncertainty_of(candidates, options_), options_);
  return keep_first(soft_truncate(candidates, ratio, options_.max_tree_width).kept, candidates,
                    kept);
}

std::unique_ptr<Pruning> no_pruning(int width) { return std::make_unique<Nothing>(width); }

std::unique_ptr<Pruning> soft_pruning(const ControllerOptions& options) {
  return std::make_unique<SoftPruning>(options);
}

std::unique_ptr<Pruning> epsilon_pruning(float epsilon, int width) {
  return std::make_unique<Epsilon>(epsilon, width);
}

std::unique_ptr<Pruning> beam_decay_pruning(int width, float decay) {
  return std::make_unique<BeamDecay>(width, decay);
}

std::unique_ptr<Pruning> shape_pruning(TreeShape shape, std::string name) {
  return std::make_unique<Shape>(std::move(shape), std::move(name));
}

std::unique_ptr<Pruning> diverse(std::unique_ptr<Pruning> inner, float most_shared) {
  return std::make_unique<Diverse>(std::move(inner), most_shared);
}

Result<TreeShape> named_shape(std::string_view name) {
  if (name == "medusa") return TreeShape::likeliest(kParallelHeads, 63);
  if (name == "eagle") return TreeShape::likeliest(kAutoregressiveHead, 25);
  constexpr std::string_view kChain = "chain:";
  if (name.starts_with(kChain)) {
    const std::string_view digits = name.substr(kChain.size());
    int length = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (error == std::errc() && end == digits.data() + digits.size() && length >= 1 &&
        length <= DraftTree::kCapacity) {
      return TreeShape::chain(length);
    }
  }
  return Status(Code::kInvalidArgument, "there is no tree shape '" + std::string(name) +
                                            "'; use chain:1 to chain:256, medusa or eagle");
}

}  // namespace sapwood
