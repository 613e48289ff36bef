// BlockSparseVerify over trees, masks and logits of the input's choice: what is accepted is a path
// of the tree, whatever is wrong is refused in one line, and target_draw and rejection decide what
// a plain reading of MATH.md and of verify/race.h decides, over dense vectors and with the same
// random numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "bytes.h"
#include "fuzz_target.h"
#include "promise.h"
#include "tree/dynamic_tree_prune.h"
#include "verify/block_sparse_verify.h"
#include "verify/chance.h"
#include "verify/race.h"

namespace {

using namespace sapwood;

constexpr double kNear = 1e-4;  // decisions nearer than this to their border may fall either way
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Input {
  int rows, vocabulary, width;
  std::vector<float> target, draft, weights;
  std::vector<uint8_t> mask;

  BlockSparseTree view() const { return {rows, vocabulary, width, target, draft, mask, weights}; }
};

float logit(Bytes& bytes, bool hostile) {
  const int byte = bytes.next();
  if (byte == 255 && hostile) return std::numeric_limits<float>::quiet_NaN();
  if (byte == 254 && hostile) return kInfinity;
  if (byte >= 250) return -kInfinity;
  return static_cast<float>(byte - 125) / 25.f;
}

// A tree in breadth-first order; hostile: any mask and weights whatever.
Input read(Bytes& bytes, bool hostile) {
  Input input;
  input.vocabulary = 2 + bytes.below(9);
  input.width = 1 + bytes.below(std::min(input.vocabulary, 5));
  const int nodes = bytes.below(10);
  input.rows = 1 + nodes;
  const size_t cells = static_cast<size_t>(input.rows * input.width);
  input.mask.assign(cells, 0);
  input.weights.assign(cells, 0.f);
  for (int i = 0; i < input.rows * input.vocabulary; ++i) {
    input.draft.push_back(logit(bytes, hostile));
    // Near the draft, so that paths are accepted, unless its token is one that cannot come out.
    const float own = logit(bytes, hostile);
    const float draft = input.draft.back();
    input.target.push_back(hostile || !(draft > -kInfinity) ? own : draft + 0.3f * own);
  }
  if (hostile) {
    for (uint8_t& byte : input.mask) byte = static_cast<uint8_t>(bytes.below(4));
    for (float& weight : input.weights) weight = static_cast<float>(bytes.next()) / 64.f;
    return input;
  }
  // At least one token a row that can come out.
  for (int row = 0; row < input.rows; ++row) {
    input.draft[static_cast<size_t>(row * input.vocabulary + row % input.vocabulary)] = 0.5f;
    input.target[static_cast<size_t>(row * input.vocabulary + bytes.below(input.vocabulary))] = 0.f;
  }
  ControllerOptions options;
  options.max_tree_width = input.width;
  CandidateSelector selector(input.vocabulary);
  std::vector<int32_t> kept(cells);
  require(dynamic_tree_prune(input.draft, input.rows, input.vocabulary, {}, options, selector,
                             kept.data(), input.weights.data(), input.mask.data())
              .ok(),
          "a distribution can be pruned");
  std::vector<uint8_t> may(cells);
  std::swap(may, input.mask);
  int made = 0;
  for (int row = 0; row <= made && row < input.rows; ++row) {
    int drawn = 0;
    for (int k = 0; k < input.width; ++k) {
      const size_t at = static_cast<size_t>(row * input.width + k);
      if (may[at] == 0 || made == nodes || (bytes.next() % 3 == 0 && made > row)) continue;
      // Drawn before or after its neighbours.
      input.mask[at] = static_cast<uint8_t>(bytes.next() % 2 == 0 ? 1 + drawn : 10 - drawn);
      ++drawn;
      ++made;
    }
  }
  input.rows = 1 + made;
  const auto first = [&](auto& values, int columns) {
    values.resize(static_cast<size_t>(input.rows * columns));
  };
  first(input.mask, input.width);
  first(input.weights, input.width);
  first(input.target, input.vocabulary);
  first(input.draft, input.vocabulary);
  return input;
}

// --- the plain reading
// ------------------------------------------------------------------------------

using Law = std::vector<double>;

Law softmax(std::span<const float> logits, double temperature) {
  Law law(logits.begin(), logits.end());
  const double largest = *std::ranges::max_element(law);
  double whole = 0;
  for (double& value : law) whole += value = std::exp((value - largest) / temperature);
  for (double& value : law) value /= whole;
  return law;
}

struct Node {
  int parent;
  int token;
};

struct Reading {
  std::vector<Node> nodes;
  std::vector<std::vector<int>> children;  // by row, in the order of drawing
  std::vector<Law> kept;                   // q~ by row, dense
};

Reading read_tree(const Input& input) {
  Reading reading;
  for (int row = 0; row < input.rows; ++row) {
    const std::span<const float> logits(input.draft.data() + row * input.vocabulary,
                                        static_cast<size_t>(input.vocabulary));
    std::vector<int> order(static_cast<size_t>(input.vocabulary));
    for (int t = 0; t < input.vocabulary; ++t) order[static_cast<size_t>(t)] = t;
    std::ranges::stable_sort(order, [&](int a, int b) { return logits[a] > logits[b]; });
    const Law q = softmax(logits, 1.0);
    Law kept(q.size(), 0.0);
    double mass = 0;
    std::vector<std::pair<int, int>> drawn;  // (value, rank)
    for (int k = 0; k < input.width; ++k) {
      const size_t at = static_cast<size_t>(row * input.width + k);
      const size_t token = static_cast<size_t>(order[static_cast<size_t>(k)]);
      if (input.weights[at] > 0) mass += kept[token] = q[token];
      if (input.mask[at] != 0) drawn.push_back({input.mask[at], k});
    }
    for (double& value : kept) value /= mass;
    std::ranges::stable_sort(drawn, {}, &std::pair<int, int>::first);
    std::vector<int> children;
    for (const auto& [value, rank] : drawn) {
      children.push_back(static_cast<int>(reading.nodes.size()));
      reading.nodes.push_back({row - 1, order[static_cast<size_t>(rank)]});
    }
    reading.children.push_back(children);
    reading.kept.push_back(kept);
  }
  return reading;
}

struct Decision {
  std::vector<int32_t> path;
  int32_t next = -1;
};

// The first entry at which the cumulative weight exceeds u times the whole; none where u lies at a
// border.
std::optional<int> choose(const Law& weights, double u) {
  double whole = 0;
  for (const double weight : weights) whole += weight;
  double cumulative = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    cumulative += weights[i];
    if (weights[i] > 0 && std::abs(cumulative / whole - u) < kNear) return std::nullopt;
    if (cumulative > u * whole) return static_cast<int>(i);
  }
  return std::nullopt;
}

// The race of verify/race.h: the first arrival of the likelier tokens, or one of the others, which
// run as one; none where two arrive together or a token is as likely as the border.
std::optional<int> race(const Law& p, uint64_t seed, uint64_t position) {
  const auto time = [&](uint32_t item, double rate) {
    return -std::log(counter_uniform(seed, position, RandomStream::kRace, item) + 0x1p-54) / rate;
  };
  const double border = *std::ranges::max_element(p) * std::exp(-static_cast<double>(kRacing));
  Law others(p.size(), 0.0);
  double left = 0;
  std::vector<std::pair<double, int>> arrivals;
  for (size_t token = 0; token < p.size(); ++token) {
    if (p[token] > 0 && std::abs(std::log(p[token] / border)) < kNear) return std::nullopt;
    if (p[token] >= border) {
      arrivals.push_back({time(static_cast<uint32_t>(token), p[token]), static_cast<int>(token)});
    } else {
      left += others[token] = p[token];
    }
  }
  if (left > 0) arrivals.push_back({time(0xFFFFFFFF, left), -1});
  std::ranges::sort(arrivals);
  if (arrivals.size() > 1 && arrivals[1].first < arrivals[0].first * (1 + kNear)) {
    return std::nullopt;
  }
  const int winner = arrivals[0].second;
  return winner >= 0 ? std::optional(winner) : choose(others, counter_uniform(seed, position));
}

Law target_at(const Input& input, int row, const BlockSparseOptions& options) {
  return softmax(
      {input.target.data() + row * input.vocabulary, static_cast<size_t>(input.vocabulary)},
      static_cast<double>(options.temperature));
}

std::optional<Decision> by_target_draw(const Input& input, const Reading& tree,
                                       const BlockSparseOptions& options) {
  Decision decision;
  int row = 0;
  for (uint64_t position = options.position;; ++position) {
    const std::optional<int> token = race(target_at(input, row, options), options.seed, position);
    if (!token) return std::nullopt;
    decision.next = *token;
    const auto& children = tree.children[static_cast<size_t>(row)];
    const auto found = std::ranges::find_if(
        children, [&](int c) { return tree.nodes[static_cast<size_t>(c)].token == *token; });
    if (found == children.end()) return decision;
    decision.path.push_back(*found);
    row = *found + 1;
  }
}

std::optional<Decision> by_rejection(const Input& input, const Reading& tree,
                                     const BlockSparseOptions& options) {
  uint64_t next = options.position * CounterChance::kDrawsPerStep;
  const auto uniform = [&] {
    return counter_uniform(options.seed, next++, RandomStream::kAcceptance);
  };
  Decision decision;
  int row = 0;
  for (;;) {
    Law p = target_at(input, row, options);
    Law q = tree.kept[static_cast<size_t>(row)];
    int accepted = -1;
    for (const int child : tree.children[static_cast<size_t>(row)]) {
      const size_t x = static_cast<size_t>(tree.nodes[static_cast<size_t>(child)].token);
      double left = 0;
      for (const double value : q) left += value;
      const double ratio = p[x] / (q[x] / left);
      const double u = uniform();
      if (p[x] > 0 && std::abs(u - ratio) < kNear) return std::nullopt;
      if (u < ratio) {
        accepted = child;
        break;
      }
      double whole = 0;
      for (size_t t = 0; t < p.size(); ++t) whole += p[t] = std::max(p[t] - q[t] / left, 0.0);
      if (whole < kNear) return std::nullopt;  // what is left of the law is rounding
      for (double& value : p) value /= whole;
      q[x] = 0;
    }
    if (accepted < 0) {
      const std::optional<int> token = choose(p, uniform());
      if (!token) return std::nullopt;
      decision.next = *token;
      return decision;
    }
    decision.path.push_back(accepted);
    row = accepted + 1;
  }
}

// --- the promises
// -----------------------------------------------------------------------------------

void check_path(const Input& input, int length, const std::vector<int32_t>& path, int32_t next) {
  require(length >= 0 && length < input.rows, "the accepted length is one of the tree's");
  require(next >= 0 && next < input.vocabulary, "the next token is in the vocabulary");
  const Reading tree = read_tree(input);
  int above = -1;
  for (int i = 0; i < input.rows - 1; ++i) {
    if (i >= length) {
      require(path[static_cast<size_t>(i)] == -1, "beyond the path there is nothing");
      continue;
    }
    const int node = path[static_cast<size_t>(i)];
    require(node >= 0 && node < input.rows - 1, "an accepted node is in the tree");
    require(tree.nodes[static_cast<size_t>(node)].parent == above, "accepted nodes are a path");
    require(target_at(input, above + 1,
                      {Verifier::kTargetDraw, 1.f, 0,
                       0})[static_cast<size_t>(tree.nodes[static_cast<size_t>(node)].token)] > 0,
            "a token that cannot come out is not accepted");
    above = node;
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (uint32_t i = 0; i < 24; ++i) {
    std::string seed = random_bytes(i, 260);
    seed[0] = static_cast<char>(i % 6 == 5 ? 0 : 1);  // one in six hostile
    seed[1] = static_cast<char>(i % 4);
    seeds.push_back(seed);
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, std::min<size_t>(size, 1000));
  const bool hostile = bytes.below(2) == 0;
  BlockSparseOptions options;
  options.verifier = static_cast<Verifier>(bytes.below(4));
  options.temperature = static_cast<float>(bytes.below(4)) * 0.5f;
  options.seed = static_cast<uint64_t>(bytes.next());
  options.position = static_cast<uint64_t>(bytes.next());
  const Input input = read(bytes, hostile);
  BlockSparseVerifier verifier(input.vocabulary);
  int32_t length = -1;
  int32_t next = -1;
  std::vector<int32_t> path(static_cast<size_t>(input.rows - 1), 77);
  const Status status = verifier.verify(input.view(), options, &length, path.data(), &next);
  if (!status.ok()) {
    require(!status.message().empty() && status.message().find('\n') == std::string::npos,
            "a refusal is one line");
    const bool wants_chain = options.verifier == Verifier::kBlock;
    const bool needs_heat = options.verifier != Verifier::kTargetDraw && options.temperature == 0.f;
    require(hostile || wants_chain || needs_heat, "a tree that fits is verified");
    return 0;
  }
  const bool finite = std::ranges::all_of(input.target, [](float v) { return v < kInfinity; }) &&
                      std::ranges::all_of(input.draft, [](float v) { return v < kInfinity; });
  if (!finite) return 0;  // in a row that no decision came to
  check_path(input, length, path, next);
  if (hostile || options.temperature == 0.f) return 0;
  path.resize(static_cast<size_t>(length));
  const Reading tree = read_tree(input);
  std::optional<Decision> expected;
  if (options.verifier == Verifier::kTargetDraw) expected = by_target_draw(input, tree, options);
  if (options.verifier == Verifier::kRejection) expected = by_rejection(input, tree, options);
  if (expected) {
    require(expected->path == path, "the accepted path is the plain reading's");
    require(expected->next == next, "the next token is the plain reading's");
  }
  return 0;
}
