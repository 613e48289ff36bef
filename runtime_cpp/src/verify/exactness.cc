#include "verify/exactness.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "tree/pruning.h"
#include "verify/sampling.h"

namespace sapwood {
namespace {

constexpr uint64_t kSeed = 20261;  // of the report's models

struct NamedPruning {
  std::string name;
  std::unique_ptr<Pruning> rule;
};

struct NamedSampling {
  const char* name;
  SamplingOptions options;
};

// How a verifier's trees come about.
struct Setting {
  const char* name;
  Verifier verifier;
  TreeOrigin origin;
  bool chain;
};

constexpr std::array<Setting, 8> kSettings = {{
    {"target_draw/ranked", Verifier::kTargetDraw, TreeOrigin::kRanked, false},
    {"target_draw/reranked", Verifier::kTargetDraw, TreeOrigin::kReranked, false},
    {"target_draw/sampled", Verifier::kTargetDraw, TreeOrigin::kSampled, false},
    {"rejection/chain", Verifier::kRejection, TreeOrigin::kSampled, true},
    {"rejection/tree", Verifier::kRejection, TreeOrigin::kSampled, false},
    {"block/chain", Verifier::kBlock, TreeOrigin::kSampled, true},
    {"traversal/chain", Verifier::kTraversal, TreeOrigin::kSampled, true},
    {"traversal/tree", Verifier::kTraversal, TreeOrigin::kSampled, false},
}};

constexpr std::array<std::pair<const char*, TinyDrafter>, 3> kDrafters = {
    {{"close", TinyDrafter::kClose},
     {"unrelated", TinyDrafter::kUnrelated},
     {"certain", TinyDrafter::kCertain}}};

// Thresholds that make a difference on laws of a few tokens.
Result<std::vector<NamedPruning>> prunings() {
  constexpr int kAll = Candidates::kMost;
  std::vector<NamedPruning> all;
  const auto add = [&](std::string name, std::unique_ptr<Pruning> rule) {
    all.push_back({std::move(name), std::move(rule)});
  };
  add("none", no_pruning(kAll));
  add("soft", soft_pruning({.beta_base = 0.5f, .entropy_low = 0.2f, .entropy_high = 1.2f}));
  add("epsilon", epsilon_pruning(0.4f, kAll));
  add("beam-decay", beam_decay_pruning(3, 0.5f));
  add("diverse", diverse(no_pruning(kAll), 0.5f));
  for (const char* shape : {"chain:2", "medusa", "eagle"}) {
    Result<TreeShape> named = named_shape(shape);
    if (!named.ok()) return named.status();
    add(shape, shape_pruning(std::move(named).value(), shape));
  }
  return all;
}

const std::array<NamedSampling, 4> kSamplings = {{
    {"t=0", {}},
    {"t=0.7", {.temperature = 0.7f}},
    {"t=1", {.temperature = 1.f}},
    {"t=1,top-k=3,top-p=0.9,penalty=1.3",
     {.temperature = 1.f, .top_k = 3, .top_p = 0.9f, .repetition_penalty = 1.3f}},
}};

// One row of the report: the mean and the worst over the models.
Result<Exactness> measure(const std::string& name, bool lossless, const EnumeratedStep& step,
                          TinyDrafter drafter, const ExactnessOptions& options) {
  Exactness row{name, lossless, 0, 0, 0};
  for (int i = 0; i < options.models; ++i) {
    TinyModel model(options.vocabulary, drafter, kSeed + static_cast<uint64_t>(i));
    const int length = options.depth + 1;
    const Result<StepLaw> law = enumerate_step(step, model, length);
    if (!law.ok()) return law.status();
    const Result<std::map<Path, double>> plain = enumerate_plain(step.sampling, model, length);
    if (!plain.ok()) return plain.status();
    const Result<double> optimum = optimum_of(law.value(), step.sampling, model);
    if (!optimum.ok()) return optimum.status();
    row.deviation = std::max(row.deviation, total_variation(law.value().texts, plain.value()));
    row.expected_accepted += law.value().expected_accepted / options.models;
    row.optimum += optimum.value() / options.models;
  }
  return row;
}

Status out_of_range(const char* option, int value, int low, int high) {
  return Status(Code::kInvalidArgument, std::string(option) + " is " + std::to_string(value) +
                                            "; it must be between " + std::to_string(low) +
                                            " and " + std::to_string(high));
}

// Multi-round rejection with `children` draws from q with replacement at every node of a full tree
// (Miao et al., SpecInfer, 2024): in each round x ~ q is accepted with min(1, r(x) / q(x)), else r
// becomes the residual. Its expected accepted length is a sum over the rounds.
Result<double> naive_multi_round(TinyModel& model, const SamplingOptions& sampling, Path& text,
                                 int children, int depth) {
  if (depth == 0) return 0.0;
  Sampler sampler(model.vocabulary());
  SAPWOOD_TRY(sampler.start(sampling, text));
  Result<TokenLaw> law = sampler.law(model.target(text));
  if (!law.ok()) return law.status();
  std::vector<double> r = probabilities(law.value(), model.vocabulary());
  law = sampler.law(model.draft(text));
  if (!law.ok()) return law.status();
  const std::vector<double> q = probabilities(law.value(), model.vocabulary());
  double reached = 1;  // probability of coming to this round
  double expected = 0;
  for (int round = 0; round < children; ++round) {
    double accepted = 0;
    double left = 0;
    for (size_t x = 0; x < r.size(); ++x) {
      const double here = std::min(r[x], q[x]);
      r[x] -= here;
      left += r[x];
      accepted += here;
      if (here == 0) continue;
      text.push_back(static_cast<int32_t>(x));
      const Result<double> below = naive_multi_round(model, sampling, text, children, depth - 1);
      text.pop_back();
      if (!below.ok()) return below.status();
      expected += reached * here * (1 + below.value());
    }
    reached *= 1 - accepted;
    if (!(left > 0)) break;
    for (double& value : r) value /= left;
  }
  return expected;
}

}  // namespace

Status ExactnessOptions::check() const {
  if (vocabulary < 2 || vocabulary > 6) return out_of_range("vocabulary", vocabulary, 2, 6);
  if (depth < 1 || depth > 3) return out_of_range("depth", depth, 1, 3);
  if (nodes < 1 || nodes > 8) return out_of_range("nodes", nodes, 1, 8);
  if (models < 1 || models > 100) return out_of_range("models", models, 1, 100);
  return Status::okay();
}

Result<std::vector<Exactness>> exactness_report(const ExactnessOptions& options) {
  SAPWOOD_TRY(options.check());
  const Result<std::vector<NamedPruning>> rules = prunings();
  if (!rules.ok()) return rules.status();
  std::vector<Exactness> report;
  EnumeratedStep step;
  step.max_nodes = options.nodes;
  step.max_depth = options.depth;
  const auto add = [&](const std::string& prefix, bool lossless, const NamedPruning& pruning,
                       const std::pair<const char*, TinyDrafter>& drafter,
                       const NamedSampling& sampling) -> Status {
    step.pruning = pruning.rule.get();
    step.sampling = sampling.options;
    const std::string name =
        prefix + "/" + pruning.name + "/" + drafter.first + "/" + sampling.name;
    const Result<Exactness> row = measure(name, lossless, step, drafter.second, options);
    if (!row.ok()) return row.status();
    report.push_back(row.value());
    return Status::okay();
  };
  for (const Setting& setting : kSettings) {
    step.verifier = setting.verifier;
    step.origin = setting.origin;
    step.max_children = setting.chain ? 1 : Candidates::kMost;
    for (const NamedPruning& pruning : rules.value()) {
      for (const auto& drafter : kDrafters) {
        for (const NamedSampling& sampling : kSamplings) {
          SAPWOOD_TRY(add(setting.name, true, pruning, drafter, sampling));
        }
      }
    }
  }
  // What must not be done, with the distance it causes.
  step.verifier = Verifier::kRejection;
  step.origin = TreeOrigin::kSampled;
  step.max_children = Candidates::kMost;
  const NamedPruning& soft = rules.value()[1];
  const NamedSampling& sampled = kSamplings[2];
  for (const auto& drafter : {kDrafters[0], kDrafters[1]}) {
    step.ablation = Ablation::kScaleAndMask;
    SAPWOOD_TRY(add("ablation: published scale-and-mask", false, soft, drafter, sampled));
    step.ablation = Ablation::kDropByProbability;
    SAPWOOD_TRY(add("ablation: drawn children dropped", false, soft, drafter, sampled));
  }
  return report;
}

Result<TreeComparison> compare_on_trees(int models) {
  if (models < 1) return out_of_range("models", models, 1, 1000000);
  TreeComparison mean{.models = models};
  const std::unique_ptr<Pruning> everything = no_pruning(Candidates::kMost);
  const std::unique_ptr<Pruning> two = no_pruning(2);
  const SamplingOptions sampling{.temperature = 1.f};
  for (int i = 0; i < models; ++i) {
    TinyModel model(3, TinyDrafter::kClose, kSeed + static_cast<uint64_t>(i));
    EnumeratedStep step{.origin = TreeOrigin::kSampled,
                        .pruning = everything.get(),
                        .sampling = sampling,
                        .max_nodes = 6,
                        .max_children = 2};
    for (const auto& [verifier, sum] : {std::pair{Verifier::kRejection, &mean.rejection},
                                        std::pair{Verifier::kTraversal, &mean.traversal}}) {
      step.verifier = verifier;
      const Result<StepLaw> law = enumerate_step(step, model, 3);
      if (!law.ok()) return law.status();
      *sum += law.value().expected_accepted / models;
      if (verifier != Verifier::kTraversal) continue;
      const Result<double> optimum = optimum_of(law.value(), sampling, model);
      if (!optimum.ok()) return optimum.status();
      mean.sampled_optimum += optimum.value() / models;
    }
    step.verifier = Verifier::kTargetDraw;
    step.origin = TreeOrigin::kRanked;
    step.pruning = two.get();
    const Result<StepLaw> ranked = enumerate_step(step, model, 3);
    if (!ranked.ok()) return ranked.status();
    mean.ranked += ranked.value().expected_accepted / models;
    Path text;
    const Result<double> naive = naive_multi_round(model, sampling, text, 2, 2);
    if (!naive.ok()) return naive.status();
    mean.naive += naive.value() / models;
  }
  return mean;
}

Result<ChainComparison> compare_on_chains(int models) {
  if (models < 1) return out_of_range("models", models, 1, 1000000);
  ChainComparison mean{.models = models, .least_gain = 1e9};
  const std::unique_ptr<Pruning> everything = no_pruning(Candidates::kMost);
  const SamplingOptions sampling{.temperature = 1.f};
  for (int i = 0; i < models; ++i) {
    const TinyDrafter drafter = i % 2 == 0 ? TinyDrafter::kClose : TinyDrafter::kUnrelated;
    TinyModel model(4, drafter, kSeed + static_cast<uint64_t>(i));
    EnumeratedStep step{.verifier = Verifier::kRejection,
                        .origin = TreeOrigin::kSampled,
                        .pruning = everything.get(),
                        .sampling = sampling,
                        .max_nodes = 3,
                        .max_depth = 3,
                        .max_children = 1};
    const Result<StepLaw> by_rejection = enumerate_step(step, model, 1);
    if (!by_rejection.ok()) return by_rejection.status();
    step.verifier = Verifier::kBlock;
    const Result<StepLaw> by_block = enumerate_step(step, model, 1);
    if (!by_block.ok()) return by_block.status();
    const Result<double> optimum = optimum_of(by_block.value(), sampling, model);
    if (!optimum.ok()) return optimum.status();
    const double rejected = by_rejection.value().expected_accepted;
    const double blocked = by_block.value().expected_accepted;
    mean.rejection += rejected / models;
    mean.block += blocked / models;
    mean.optimum += optimum.value() / models;
    mean.least_gain = std::min(mean.least_gain, blocked - rejected);
  }
  return mean;
}

}  // namespace sapwood
