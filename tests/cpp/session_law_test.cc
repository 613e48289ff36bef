// The law of the text that sessions emit, by a chi-square test over 200,000 seeds against the exact
// one: every mode with every verifier that fits. The seeds are fixed, so a test that passes goes on
// passing; a correct engine fails one of them with a probability below 1e-7.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "draft/lookup_drafter.h"
#include "engine/session.h"
#include "measure/allocation_counter.h"
#include "verify/chance.h"
#include "verify/masked_laws.h"
#include "verify/random.h"
#include "verify/tiny_model.h"
#include "verify/verify_sampled.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
constexpr int kVocabulary = 4;
constexpr int kLength = 3;  // tokens whose joint law is compared
// Under a sanitizer it is its findings that count: a tenth has to do.
const int kSeeds = counts_allocations() ? 200000 : 20000;
constexpr double kMostDeviates = 6;  // one in 1e9 of a normal law
constexpr double kLeastExpected = 10;
const Text kPrompt = {1, 2, 1};
const SamplingOptions kSampling = {.temperature = 1.f};

// Logits in [-spread, spread) by the last two tokens of a text and its length.
class Table {
 public:
  Table(uint64_t seed, float spread) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (int t = 0; t < kVocabulary; ++t) {
        rows_[i][static_cast<size_t>(t)] =
            spread * static_cast<float>(
                         2 * counter_uniform(seed, i * kVocabulary + static_cast<size_t>(t)) - 1);
      }
    }
  }
  const std::array<float, kVocabulary>& after(int32_t before, int32_t last, size_t length) const {
    return rows_[(static_cast<size_t>(before) * kVocabulary + static_cast<size_t>(last)) * 8 +
                 length % 8];
  }
  const std::array<float, kVocabulary>& after(const Text& text) const {
    return after(text[text.size() - 2], text.back(), text.size());
  }

 private:
  std::array<std::array<float, kVocabulary>, kVocabulary * kVocabulary * 8> rows_;
};

const Table& target() {
  static const Table table(11, 1.6f);
  return table;
}

// Of a drafter that has little to do with the target.
const Table& unrelated() {
  static const Table table(12, 1.6f);
  return table;
}

// Looks the rows of a pass up; each slot remembers its token.
class TableModel final : public Model {
 public:
  explicit TableModel(const Table& table) : table_(table) {
    spec_.family = "llama";
    spec_.vocabulary_size = kVocabulary;
    spec_.layers = 1;
    spec_.heads = 1;
    spec_.kv_heads = 1;
    spec_.head_dim = 16;
    spec_.context_length = 64;
  }
  const ModelSpec& spec() const override { return spec_; }
  std::string_view host() const override { return "table"; }
  int max_rows() const override { return 16; }
  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override {
    const KvLayout& layout = kv.layout();
    const KvLayerView view = kv.layer(0);
    for (int row = 0; row < batch.rows(); ++row) {
      view.keys[layout.key_offset(0, batch.slots[row], 0)] =
          static_cast<uint16_t>(batch.tokens[row]);
    }
    for (size_t o = 0; o < batch.output_rows.size(); ++o) {
      const int row = batch.output_rows[o];
      const int end = batch.path_end[row];
      const int32_t slot =
          end - batch.path_begin[row] > 1 ? batch.path_slots[end - 2] : batch.context_slots.back();
      const auto& values = table_.after(view.keys[layout.key_offset(0, slot, 0)], batch.tokens[row],
                                        batch.positions[row] + 1);
      std::copy(values.begin(), values.end(), logits.begin() + o * kVocabulary);
    }
    return Status::okay();
  }

 private:
  const Table& table_;
  ModelSpec spec_;
};

// Candidates that have little to do with the target: all four tokens, each at its own odds.
class Unrelated final : public LookupDrafter {
 public:
  const DrafterTraits& traits() const override {
    static const DrafterTraits kTraits{.name = "unrelated", .gives_proposals = true};
    return kTraits;
  }
  Status start(std::span<const int32_t> tokens, int) override {
    text_.assign(tokens.begin(), tokens.end());
    return Status::okay();
  }
  void follow(std::span<const int32_t> tokens) override {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }

 private:
  int look_up(const DraftTree& tree, int node, std::span<Candidate> out) override {
    const int parent = node == DraftTree::kRoot ? DraftTree::kRoot : tree.parent(node);
    const int32_t last = node == DraftTree::kRoot ? text_.back() : tree.token(node);
    const int32_t before = node == DraftTree::kRoot     ? text_[text_.size() - 2]
                           : parent == DraftTree::kRoot ? text_.back()
                                                        : tree.token(parent);
    const auto& logits =
        unrelated().after(before, last, text_.size() + static_cast<size_t>(tree.depth(node)));
    double whole = 0.1;
    for (const float logit : logits) whole += std::exp(static_cast<double>(logit));
    for (int32_t t = 0; t < kVocabulary; ++t) {
      const double p = std::exp(static_cast<double>(logits[static_cast<size_t>(t)])) / whole;
      out[static_cast<size_t>(t)] = {t, static_cast<float>(std::log(p)), static_cast<float>(p)};
    }
    std::sort(out.begin(), out.begin() + kVocabulary,
              [](const Candidate& a, const Candidate& b) { return a.acceptance > b.acceptance; });
    return kVocabulary;
  }
  void added(const DraftTree&, int, int) override {}

  Text text_;
};

// Is sure that the next answer is the latest one again, and forgets all the others.
class Parrot final : public LookupDrafter {
 public:
  const DrafterTraits& traits() const override {
    static const DrafterTraits kTraits{.name = "parrot", .gives_proposals = true};
    return kTraits;
  }
  Status start(std::span<const int32_t>, int) override {
    latest_ = answer_;
    answer_.clear();
    return Status::okay();
  }
  void follow(std::span<const int32_t> tokens) override {
    answer_.insert(answer_.end(), tokens.begin(), tokens.end());
  }

 private:
  int look_up(const DraftTree& tree, int node, std::span<Candidate> out) override {
    const size_t at = answer_.size() + static_cast<size_t>(tree.depth(node));
    if (at >= latest_.size()) return 0;
    out[0] = {latest_[at], 0.f, 0.9f};
    return 1;
  }
  void added(const DraftTree&, int, int) override {}

  Text latest_;
  Text answer_;
};

int index_of(std::span<const int32_t> text) {
  int index = 0;
  for (int i = 0; i < kLength; ++i) index = index * kVocabulary + text[static_cast<size_t>(i)];
  return index;
}

// By index_of.
const std::vector<double>& exact_law() {
  static const std::vector<double> law = [] {
    std::vector<double> all;
    Sampler sampler(kVocabulary);
    const std::function<void(Text&, double)> walk = [&](Text& text, double weight) {
      if (text.size() == kPrompt.size() + kLength) return all.push_back(weight);
      EXPECT_TRUE(sampler.start(kSampling, text).ok());
      const std::vector<double> p =
          probabilities(sampler.law(target().after(text)).value(), kVocabulary);
      for (int32_t t = 0; t < kVocabulary; ++t) {
        text.push_back(t);
        walk(text, weight * p[static_cast<size_t>(t)]);
        text.pop_back();
      }
    };
    Text text = kPrompt;
    walk(text, 1.0);
    return all;
  }();
  return law;
}

// The chi-square statistic of what `answer(seed)` gives, as a deviate of the normal law (Wilson and
// Hilferty, 1931). Texts that are expected less than kLeastExpected times count together.
double deviates(const std::function<int(uint64_t)>& answer) {
  const std::vector<double>& law = exact_law();
  std::vector<int> seen(law.size());
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(kSeeds); ++seed)
    ++seen[static_cast<size_t>(answer(seed))];
  double statistic = 0;
  double rare_expected = 0;
  double rare_seen = 0;
  int cells = 0;
  const auto add = [&](double observed, double expected) {
    statistic += (observed - expected) * (observed - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < law.size(); ++i) {
    const double expected = law[i] * kSeeds;
    if (expected < kLeastExpected) {
      rare_expected += expected;
      rare_seen += seen[i];
    } else {
      add(seen[i], expected);
    }
  }
  if (rare_expected > 0) add(rare_seen, rare_expected);
  EXPECT_GT(cells, 40) << "the law is too narrow to test anything";
  const double spread = 2.0 / (9 * (cells - 1));
  return (std::cbrt(statistic / (cells - 1)) - (1 - spread)) / std::sqrt(spread);
}

std::unique_ptr<Session> open_session(std::unique_ptr<Drafter> drafter) {
  SessionOptions options;
  options.context_length = 24;
  options.max_tree_nodes = 7;
  options.drafter = std::move(drafter);
  options.measured_costs = {{24}, {1, 16}, {1.0, 1.1}};
  options.learn_costs = false;
  return std::move(Session::create(std::make_shared<TableModel>(target()), std::move(options)))
      .value();
}

int first_tokens(
    Session& session, const GenerateOptions& options,
    const std::function<void()>& before_step = [] {}) {
  EXPECT_TRUE(session.start(kPrompt, options).ok());
  while (session.stats().emitted_tokens < kLength) {
    before_step();
    const auto step = session.step();
    EXPECT_TRUE(step.ok()) << step.status().message();
    if (!step.ok() || step.value().empty()) return 0;
  }
  return index_of(session.tokens().subspan(kPrompt.size()));
}

CostCurve cheap_passes() {
  return CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{0.01, 0.02});
}

// A network that can say three of the four tokens, as a draft over a subset of the vocabulary does.
class Subset final : public DraftNetwork {
 public:
  int vocabulary_size() const override { return kVocabulary; }
  int max_rows() const override { return model_.max_rows(); }
  int law_size() const override { return static_cast<int>(kIds.size()); }
  std::span<const int32_t> token_ids() const override { return kIds; }
  int entry_of(int32_t token) const override {
    const auto found = std::ranges::find(kIds, token);
    return found == kIds.end() ? -1 : static_cast<int>(found - kIds.begin());
  }
  Result<std::unique_ptr<KvStore>> make_kv(int slots) const override {
    return KvStore::create(1, 1, 16, slots);
  }
  Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) override {
    const size_t outputs = pass.batch.output_rows.size();
    SAPWOOD_TRY(model_.forward(pass.batch, *kv, std::span(all_).first(outputs * kVocabulary)));
    for (size_t i = 0; i < outputs * kIds.size(); ++i) {
      logits[i] = all_[i / kIds.size() * kVocabulary + static_cast<size_t>(kIds[i % kIds.size()])];
    }
    return Status::okay();
  }

 private:
  static constexpr std::array<int32_t, 3> kIds = {0, 1, 3};
  TableModel model_{unrelated()};
  std::array<float, 16 * kVocabulary> all_;
};

std::unique_ptr<Drafter> drafter_named(const std::string& name) {
  if (name == "unrelated") return std::make_unique<Unrelated>();
  if (name == "subset") {
    return std::make_unique<ModelDrafter>(
        "subset", std::make_unique<Subset>(),
        ModelDrafterOptions{.cost = cheap_passes(), .learn_costs = false});
  }
  DrafterParts parts;
  if (drafter_needs_model(name)) {
    parts.model = std::make_shared<TableModel>(unrelated());
    parts.model_options = {.cost = cheap_passes(), .learn_costs = false};
  }
  return make_drafter(name, parts).value();
}

struct Case {
  Mode mode;
  Verifier verifier;
  const char* drafter;
};

class SessionLaw : public testing::TestWithParam<Case> {};

TEST_P(SessionLaw, OfTheFirstThreeTokensIsTheTargets) {
  const Case& c = GetParam();
  const std::unique_ptr<Session> session = open_session(drafter_named(c.drafter));
  GenerateOptions options;
  options.mode = c.mode;
  options.verifier = c.verifier;
  options.sampling = kSampling;
  options.max_new_tokens = kLength + 2;  // so that drafts reach beyond what is compared
  options.chain_length = 3;
  options.fixed_nodes = 5;
  options.controller = {.beta_base = 0.5f, .entropy_low = 0.3f, .entropy_high = 1.3f};
  options.adapt = true;
  int64_t accepted = 0;
  const double found = deviates([&](uint64_t seed) {
    options.sampling.seed = seed;
    const int text = first_tokens(*session, options);
    accepted += session->stats().accepted_tokens;
    return text;
  });
  EXPECT_LT(found, kMostDeviates);
  if (c.mode != Mode::kPlain) {
    EXPECT_GT(accepted, kSeeds / 10) << "nothing was tested";
  }
}

std::vector<Case> cases() {
  std::vector<Case> all = {{Mode::kPlain, Verifier::kTargetDraw, "none"}};
  for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
    for (const Verifier verifier :
         {Verifier::kTargetDraw, Verifier::kRejection, Verifier::kTraversal, Verifier::kBlock}) {
      if (verifier == Verifier::kBlock && mode == Mode::kFixed) continue;
      all.push_back({mode, verifier, "mix"});
      if (verifier == Verifier::kTargetDraw) continue;
      all.push_back({mode, verifier, "unrelated"});
      all.push_back({mode, verifier, "model"});
      if (mode == Mode::kDynamic) all.push_back({mode, verifier, "cascade"});
      if (mode == Mode::kDynamic) all.push_back({mode, verifier, "subset"});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(EveryModeAndVerifier, SessionLaw, testing::ValuesIn(cases()),
                         [](const auto& info) {
                           return std::string(mode_name(info.param.mode)) + "_" +
                                  std::string(verifier_name(info.param.verifier)) + "_" +
                                  info.param.drafter;
                         });

TEST(SessionLawOfSwitches, IsTheTargetsWhateverStrategyIsForcedAtEveryStep) {
  struct Switching {
    Mode mode;
    Verifier verifier;
  };
  for (const Switching& each : {Switching{Mode::kFixed, Verifier::kRejection},
                                Switching{Mode::kDynamic, Verifier::kTraversal},
                                Switching{Mode::kDynamic, Verifier::kBlock}}) {
    const std::unique_ptr<Session> session = open_session(drafter_named("unrelated"));
    GenerateOptions options;
    options.mode = each.mode;
    options.verifier = each.verifier;
    options.sampling = kSampling;
    options.max_new_tokens = kLength + 2;
    options.chain_length = 3;
    options.fixed_nodes = 5;
    int forced = 0;  // by the number of the step alone: that knows nothing of anybody's luck
    EXPECT_LT(deviates([&](uint64_t seed) {
                options.sampling.seed = seed;
                return first_tokens(*session, options, [&] {
                  session->force(static_cast<Strategy>(forced++ % kStrategies));
                });
              }),
              kMostDeviates)
        << verifier_name(each.verifier);
    EXPECT_GT(session->stats().strategy_changes, 0);
  }
}

// What the drafter learnt from the first answer was decided by the first answer's luck. Were the
// second answer to meet the same luck again, its law would be another.
TEST(SessionLawOfARepeatedSeed, IsTheTargetsThoughTheDrafterKnowsTheAnswerThatTheSeedGaveBefore) {
  for (const Verifier verifier : {Verifier::kRejection, Verifier::kTraversal, Verifier::kBlock}) {
    const std::unique_ptr<Session> session = open_session(std::make_unique<Parrot>());
    GenerateOptions options;
    options.mode = Mode::kChain;
    options.verifier = verifier;
    options.sampling = kSampling;
    options.max_new_tokens = kLength + 2;
    EXPECT_LT(deviates([&](uint64_t seed) {
                options.sampling.seed = seed;
                first_tokens(*session, options);
                return first_tokens(*session, options);
              }),
              kMostDeviates)
        << verifier_name(verifier);
  }
}

// The control: a step by hand, with the target as it is and as the published kernel makes it.
TEST(SessionLawControl, ABiasedVerifierIsCaughtByTheSameTest) {
  const std::unique_ptr<Pruning> two = no_pruning(2);
  const auto answers = [&](bool masked) {
    Sampler sampler(kVocabulary);
    SampledTreeGrower grower;
    DraftTree tree;
    Proposals proposals;
    VerifyWorkspace workspace(kVocabulary);
    Verdict verdict;
    CandidateSelector selector(kVocabulary);
    return deviates([&](uint64_t seed) {
      Text text = kPrompt;
      for (uint64_t step = 0; text.size() < kPrompt.size() + kLength; ++step) {
        const auto text_at = [&](int node) {
          std::array<int, DraftTree::kCapacity> path;
          const int depth = node == DraftTree::kRoot ? 0 : tree.path(node, path);
          Text whole = text;
          for (int i = 0; i < depth; ++i) whole.push_back(tree.token(path[static_cast<size_t>(i)]));
          return whole;
        };
        tree.clear();
        proposals.clear();
        CounterChance drafting(seed, RandomStream::kDraft, step);
        const auto expand = [&](int node) -> Result<Expansion> {
          return Expansion{selector.select(unrelated().after(text_at(node)), {}, 32).value(), 0.5f};
        };
        EXPECT_TRUE(grower.grow({4, 2, 2}, two.get(), expand, drafting, tree, proposals).ok());
        std::vector<float> logits;
        for (int node = DraftTree::kRoot; node < tree.size(); ++node) {
          const auto& row = target().after(text_at(node));
          logits.insert(logits.end(), row.begin(), row.end());
        }
        EXPECT_TRUE(sampler.start(kSampling, text).ok());
        LogitLaws laws(tree, logits, sampler);
        MaskedLaws conditioned(laws, proposals);
        CounterChance judging(seed, RandomStream::kAcceptance, step);
        EXPECT_TRUE(verify_sampled(Verifier::kRejection, {tree, proposals},
                                   masked ? static_cast<NodeLaws&>(conditioned) : laws, judging,
                                   {100, {}}, workspace, verdict)
                        .ok());
        text.insert(text.end(), verdict.emitted.begin(), verdict.emitted.end());
      }
      return index_of(std::span<const int32_t>(text).subspan(kPrompt.size()));
    });
  };
  EXPECT_LT(answers(false), kMostDeviates);
  EXPECT_GT(answers(true), 5 * kMostDeviates);
}

}  // namespace
}  // namespace sapwood
