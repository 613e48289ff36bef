#include "verify/enumerate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "tree/candidates.h"
#include "tree/sampled_tree.h"
#include "verify/branching.h"
#include "verify/masked_laws.h"
#include "verify/node_laws.h"
#include "verify/target_draw.h"
#include "verify/verify_sampled.h"

namespace sapwood {
namespace {

// For laws over so few tokens, entropies are small.
const ControllerOptions kTinyEntropy = {.entropy_low = 0.2f, .entropy_high = 1.1f};

Path text_of(const DraftTree& tree, int node) {
  std::array<int, DraftTree::kCapacity> path;
  const int depth = node == DraftTree::kRoot ? 0 : tree.path(node, path);
  Path text;
  for (int i = 0; i < depth; ++i) text.push_back(tree.token(path[i]));
  return text;
}

// One step on a tiny model; all that a branch needs, made once.
class Enumeration {
 public:
  Enumeration(const EnumeratedStep& step, TinyModel& model)
      : step_(step),
        model_(model),
        sampler_(model.vocabulary()),
        draft_sampler_(model.vocabulary()),
        selector_(model.vocabulary()),
        workspace_(model.vocabulary()) {
    verdict_.reserve(DraftTree::kCapacity);
  }

  Status run(Chance& chance) {
    tree_.clear();
    proposals_.clear();
    SAPWOOD_TRY(draft(chance));
    logits_.clear();
    for (int node = DraftTree::kRoot; node < tree_.size(); ++node) {
      const std::vector<float>& row = model_.target(text_of(tree_, node));
      logits_.insert(logits_.end(), row.begin(), row.end());
    }
    SAPWOOD_TRY(sampler_.start(step_.sampling, {}));
    if (step_.ablation == Ablation::kNone) {
      SAPWOOD_TRY(check_fit(step_.verifier, step_.origin, tree_, &proposals_));
    }
    return verify(chance);
  }

  const DraftTree& tree() const { return tree_; }
  const Verdict& verdict() const { return verdict_; }

 private:
  Result<Candidates> candidates(int node) {
    const Path text = text_of(tree_, node);
    SAPWOOD_TRY(draft_sampler_.start(step_.sampling, text));
    const Result<TokenLaw> law = draft_sampler_.law(model_.draft(text));
    if (!law.ok()) return law.status();
    return selector_.select(law.value().log_p, law.value().tokens, Candidates::kMost);
  }

  Status draft(Chance& chance) {
    if (step_.origin == TreeOrigin::kSampled) {
      const auto expand = [&](int node) -> Result<Expansion> {
        Result<Candidates> found = candidates(node);
        if (!found.ok()) return found.status();
        // Depends on what was drawn on the way: growth that looks at identities.
        const float a = entropy_uncertainty(found.value().entropy, kTinyEntropy);
        return Expansion{found.value(), 0.9f - 0.6f * a};
      };
      SAPWOOD_TRY(grower_.grow({step_.max_nodes, step_.max_depth, step_.max_children},
                               step_.pruning, expand, chance, tree_, proposals_));
      if (step_.ablation == Ablation::kDropByProbability) drop_unlikely();
      return Status::okay();
    }
    return rank();
  }

  // Best first by path probability, what the pruning keeps; a re-ranked tree is grown to twice its
  // size and cut to the nodes with the largest q.
  Status rank() {
    struct Open {
      double log_q;
      int parent;
      int32_t token;
      float own;
    };
    std::vector<Open> frontier;
    DraftTree grown;
    std::vector<double> log_q;
    const auto open = [&](int node, double above) -> Status {
      const Result<Candidates> found = candidates(node);
      if (!found.ok()) return found.status();
      std::array<int, Candidates::kMost> ranks;
      const int n = step_.pruning->select(tree_, node, found.value(), ranks);
      for (int i = 0; i < std::min(n, step_.max_children); ++i) {
        const float own = found.value().log_q[ranks[i]];
        frontier.push_back(
            {above + static_cast<double>(own), node, found.value().tokens[ranks[i]], own});
      }
      return Status::okay();
    };
    const bool rerank = step_.origin == TreeOrigin::kReranked;
    const int grow_to = rerank ? 2 * step_.max_nodes : step_.max_nodes;
    SAPWOOD_TRY(open(DraftTree::kRoot, 0));
    while (!frontier.empty() && tree_.size() < grow_to) {
      // Breadth first for a tree that is to be cut, so that cutting has something to choose.
      const auto best =
          rerank ? frontier.begin()
                 : std::max_element(frontier.begin(), frontier.end(),
                                    [](const Open& a, const Open& b) { return a.log_q < b.log_q; });
      const Open taken = *best;
      frontier.erase(best);
      const int node = tree_.add(taken.parent, taken.token, taken.own, taken.own, 0.5f);
      log_q.push_back(taken.log_q);
      if (tree_.depth(node) < step_.max_depth) SAPWOOD_TRY(open(node, taken.log_q));
    }
    if (rerank) cut_to_likeliest(log_q);
    return Status::okay();
  }

  void cut_to_likeliest(const std::vector<double>& log_q) {
    std::vector<int> order(log_q.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return log_q[a] > log_q[b]; });
    order.resize(std::min<size_t>(order.size(), static_cast<size_t>(step_.max_nodes)));
    std::sort(order.begin(), order.end());
    keep(order);
  }

  // Children whose q~ is below that of a sibling drawn with them, leaving one at each node.
  void drop_unlikely() {
    std::vector<int> kept;
    for (int node = 0; node < tree_.size(); ++node) {
      bool stays = std::find(kept.begin(), kept.end(), tree_.parent(node)) != kept.end() ||
                   tree_.parent(node) == DraftTree::kRoot;
      for (int c = tree_.first_child(tree_.parent(node)); c != DraftTree::kNone;
           c = tree_.next_sibling(c)) {
        stays = stays && tree_.log_q_kept(c) <= tree_.log_q_kept(node);
      }
      if (stays) kept.push_back(node);
    }
    // The proposals are indexed by node: what is left moves together.
    std::vector<Path> texts;
    for (const int node : kept) texts.push_back(text_of(tree_, node));
    const Proposals before = proposals_;
    keep(kept);
    proposals_.clear();
    const auto copy = [&](int from, int to) {
      const Proposals::View view = before.at(from);
      std::vector<float> logs;
      for (const double q : view.q) logs.push_back(static_cast<float>(std::log(q)));
      if (view.size() > 0) proposals_.set(to, view.tokens, logs);
    };
    copy(DraftTree::kRoot, DraftTree::kRoot);
    for (size_t i = 0; i < kept.size(); ++i) copy(kept[i], static_cast<int>(i));
  }

  void keep(const std::vector<int>& nodes) {
    const DraftTree before = tree_;
    tree_.clear();
    std::vector<int> moved(static_cast<size_t>(before.size()), DraftTree::kNone);
    for (const int node : nodes) {
      const int parent = before.parent(node) == DraftTree::kRoot
                             ? DraftTree::kRoot
                             : moved[static_cast<size_t>(before.parent(node))];
      moved[static_cast<size_t>(node)] =
          tree_.add(parent, before.token(node), before.log_q(node), before.log_q_kept(node),
                    before.acceptance(node));
    }
  }

  Status verify(Chance& chance) {
    LogitLaws laws(tree_, logits_, sampler_);
    MaskedLaws masked(laws, proposals_);
    NodeLaws& seen = step_.ablation == Ablation::kScaleAndMask ? static_cast<NodeLaws&>(masked)
                                                               : static_cast<NodeLaws&>(laws);
    const VerifyLimits limits{DraftTree::kCapacity, {}};
    const SampledDraft draft{tree_, proposals_};
    if (step_.verifier != Verifier::kTargetDraw) {
      return verify_sampled(step_.verifier, draft, seen, chance, limits, workspace_, verdict_);
    }
    return target_draw_walk(tree_, limits, verdict_, [&](int node, size_t) -> Result<int32_t> {
      const Result<TokenLaw> law = seen.at(node);
      if (!law.ok()) return law.status();
      return chance.choose(probabilities(law.value(), model_.vocabulary()));
    });
  }

  const EnumeratedStep& step_;
  TinyModel& model_;
  Sampler sampler_;
  Sampler draft_sampler_;
  CandidateSelector selector_;
  VerifyWorkspace workspace_;
  SampledTreeGrower grower_;
  DraftTree tree_;
  Proposals proposals_;
  std::vector<float> logits_;
  Verdict verdict_;
};

// Adds the law of plain decoding from `text` to `length` tokens, times `weight`.
Status continue_plainly(Sampler& sampler, const SamplingOptions& sampling, TinyModel& model,
                        Path& text, size_t length, double weight, std::map<Path, double>& law) {
  if (text.size() >= length) {
    law[Path(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length))] += weight;
    return Status::okay();
  }
  SAPWOOD_TRY(sampler.start(sampling, text));
  const Result<TokenLaw> here = sampler.law(model.target(text));
  if (!here.ok()) return here.status();
  const std::vector<double> p = probabilities(here.value(), model.vocabulary());
  for (int32_t token = 0; token < model.vocabulary(); ++token) {
    if (p[static_cast<size_t>(token)] == 0) continue;
    text.push_back(token);
    SAPWOOD_TRY(continue_plainly(sampler, sampling, model, text, length,
                                 weight * p[static_cast<size_t>(token)], law));
    text.pop_back();
  }
  return Status::okay();
}

PathSet paths_of(const DraftTree& tree) {
  PathSet paths;
  for (int node = 0; node < tree.size(); ++node) paths.insert(text_of(tree, node));
  return paths;
}

}  // namespace

Result<StepLaw> enumerate_step(const EnumeratedStep& step, TinyModel& model, int length) {
  SAPWOOD_TRY(step.sampling.check());
  if (step.pruning == nullptr) return Status(Code::kInvalidArgument, "a step needs a pruning rule");
  Enumeration enumeration(step, model);
  BranchingChance chance;
  StepLaw law;
  std::map<Path, double> emitted;
  do {
    chance.rewind();
    SAPWOOD_TRY(enumeration.run(chance));
    const Verdict& verdict = enumeration.verdict();
    emitted[verdict.emitted] += chance.weight();
    law.drafts[paths_of(enumeration.tree())] += chance.weight();
    law.expected_accepted += chance.weight() * static_cast<double>(verdict.accepted.size());
    ++law.branches;
  } while (chance.advance());
  Sampler sampler(model.vocabulary());
  for (const auto& [tokens, weight] : emitted) {
    Path text = tokens;
    SAPWOOD_TRY(continue_plainly(sampler, step.sampling, model, text, static_cast<size_t>(length),
                                 weight, law.texts));
  }
  return law;
}

Result<std::map<Path, double>> enumerate_plain(const SamplingOptions& sampling, TinyModel& model,
                                               int length) {
  SAPWOOD_TRY(sampling.check());
  Sampler sampler(model.vocabulary());
  std::map<Path, double> law;
  Path text;
  SAPWOOD_TRY(
      continue_plainly(sampler, sampling, model, text, static_cast<size_t>(length), 1.0, law));
  return law;
}

double total_variation(const std::map<Path, double>& a, const std::map<Path, double>& b) {
  double sum = 0;
  for (const auto& [text, p] : a) {
    const auto other = b.find(text);
    sum += std::abs(p - (other == b.end() ? 0.0 : other->second));
  }
  for (const auto& [text, p] : b) {
    if (!a.contains(text)) sum += p;
  }
  return sum / 2;
}

Result<double> optimum_of(const StepLaw& law, const SamplingOptions& sampling, TinyModel& model) {
  Sampler sampler(model.vocabulary());
  std::map<Path, std::vector<double>> known;
  Status failed;
  const double best = optimal_accepted(law.drafts, [&](const Path& path, int32_t token) {
    auto [entry, fresh] = known.try_emplace(path);
    if (fresh) {
      entry->second.assign(static_cast<size_t>(model.vocabulary()), 0.0);
      const Status started = sampler.start(sampling, path);
      const Result<TokenLaw> here = sampler.law(model.target(path));
      if (!started.ok() || !here.ok()) {
        failed = started.ok() ? here.status() : started;
      } else {
        entry->second = probabilities(here.value(), model.vocabulary());
      }
    }
    return entry->second[static_cast<size_t>(token)];
  });
  if (!failed.ok()) return failed;
  return best;
}

}  // namespace sapwood
