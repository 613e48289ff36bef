// Trained drafts over small random weights: what a pass computes, and that a row's bits are its
// own.
#include "model/draft_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "model/parallel_heads.h"
#include "tree/row_layout.h"

namespace sapwood {
namespace {

struct Pair {
  std::shared_ptr<const Bundle> target;
  std::shared_ptr<const DraftFolder> draft;
};

Pair pair_of(const std::string& family, const TestDraftOptions& options = {}) {
  const std::string folder = write_test_bundle(test_bundle_options(family)).value();
  const std::string draft = write_test_draft(folder, options).value();
  return {std::make_shared<const Bundle>(Bundle::open(folder).value()),
          std::make_shared<const DraftFolder>(DraftFolder::open(draft).value())};
}

std::unique_ptr<DraftHead> head_of(const Pair& pair, int threads = 2, int max_rows = 48) {
  Result<std::unique_ptr<DraftHead>> head =
      DraftHead::open(pair.draft, pair.target, {.threads = threads, .max_rows = max_rows});
  EXPECT_TRUE(head.ok()) << head.status().message();
  return std::move(head).value();
}

// Rows of a text and of nodes that hang below one another or the text's end, all at once or one at
// a time.
struct Rows {
  std::vector<int32_t> tokens;
  std::vector<int> parent;      // a row, or -1 for the text's first
  std::vector<float> features;  // of the text's rows
  int text = 0;
};

Rows random_rows(std::mt19937& random, const DraftHead& head, int text, int nodes) {
  Rows rows;
  rows.text = text;
  std::normal_distribution<float> normal;
  for (int row = 0; row < text + nodes; ++row) {
    rows.tokens.push_back(static_cast<int32_t>(random() % head.manifest().target.vocabulary_size));
    rows.parent.push_back(row < text ? row - 1
                                     : text - 1 + static_cast<int>(random() % (row - text + 1)));
  }
  rows.features.resize(static_cast<size_t>(text) * head.manifest().feature_size());
  for (float& value : rows.features) value = 3 * normal(random);
  return rows;
}

struct Output {
  std::vector<float> logits;  // of every row
  std::vector<float> states;
};

// Runs rows [begin, end), whose ancestors have been run, in one pass; row i in slot slots[i].
void run(DraftHead& head, KvStore& kv, const Rows& rows, const std::vector<int32_t>& slots,
         int begin, int end, Output* out) {
  const size_t hidden = head.spec().hidden_size;
  const size_t law = head.manifest().subset;
  const size_t feature = head.manifest().feature_size();
  std::vector<int32_t> positions, row_slots, paths, path_begin, path_end, outputs;
  std::vector<float> parents;
  for (int row = begin; row < end; ++row) {
    std::vector<int32_t> path;
    for (int r = row; r >= 0; r = rows.parent[r]) path.insert(path.begin(), slots[r]);
    positions.push_back(static_cast<int32_t>(path.size()) - 1);
    row_slots.push_back(slots[row]);
    path_begin.push_back(static_cast<int32_t>(paths.size()));
    paths.insert(paths.end(), path.begin(), path.end());
    path_end.push_back(static_cast<int32_t>(paths.size()));
    outputs.push_back(row - begin);
    if (row >= rows.text) {
      const auto parent = out->states.begin() + static_cast<ptrdiff_t>(rows.parent[row] * hidden);
      parents.insert(parents.end(), parent, parent + static_cast<ptrdiff_t>(hidden));
    }
  }
  const RowBatch batch{std::span(rows.tokens).subspan(begin, end - begin),
                       positions,
                       row_slots,
                       {},
                       paths,
                       path_begin,
                       path_end,
                       outputs};
  const int verified = std::clamp(rows.text - begin, 0, end - begin);
  std::vector<float> logits(outputs.size() * law);
  const Status status = head.forward(
      batch, std::span(rows.features).subspan(begin * feature * (verified > 0), verified * feature),
      parents, head.make_vocabulary(), kv, logits);
  ASSERT_TRUE(status.ok()) << status.message();
  out->logits.insert(out->logits.end(), logits.begin(), logits.end());
  out->states.insert(out->states.end(), head.states().begin(), head.states().end());
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(DraftHead, GivesEachOf32RowsTheBitsItHasAloneWithAnyThreadsAndSlots) {
  for (const std::string family : {"llama", "qwen3", "gemma3"}) {
    const Pair pair = pair_of(family);
    std::mt19937 random(7);
    const auto head = head_of(pair);
    for (int width = 1; width <= 32; ++width) {
      // The text in one pass, then `width` of its end's children.
      Rows rows = random_rows(random, *head, 5, width);
      for (int row = 5; row < 5 + width; ++row) rows.parent[row] = 4;
      Output together, alone;
      std::vector<int32_t> slots(rows.tokens.size());
      std::iota(slots.begin(), slots.end(), 0);
      const auto kv = head->make_kv(96).value();
      run(*head, *kv, rows, slots, 0, 5, &together);
      run(*head, *kv, rows, slots, 5, 5 + width, &together);
      std::shuffle(slots.begin(), slots.end(), random);
      const auto other = head_of(pair, 1);
      const auto other_kv = other->make_kv(96).value();
      for (int row = 0; row < 5 + width; ++row) {
        run(*other, *other_kv, rows, slots, row, row + 1, &alone);
      }
      ASSERT_TRUE(same_bits(together.logits, alone.logits)) << family << ' ' << width;
      ASSERT_TRUE(same_bits(together.states, alone.states)) << family << ' ' << width;
    }
  }
}

TEST(DraftHead, AChainIsATreeOfWidthOne) {
  const Pair pair = pair_of("llama");
  std::mt19937 random(3);
  const auto head = head_of(pair);
  // A chain below the text, and the same chain inside a wide tree, a level a pass.
  Rows rows = random_rows(random, *head, 3, 12);
  for (int row = 3; row < 15; ++row) rows.parent[row] = row < 6 ? 2 : row - 3;
  std::vector<int32_t> slots(15);
  std::iota(slots.begin(), slots.end(), 0);
  const auto kv = head->make_kv(32).value();
  Output tree;
  run(*head, *kv, rows, slots, 0, 3, &tree);
  for (int level = 3; level < 15; level += 3) run(*head, *kv, rows, slots, level, level + 3, &tree);
  const size_t law = head->spec().vocabulary_size;
  for (int branch = 0; branch < 3; ++branch) {
    Rows chain = rows;
    chain.tokens.resize(7);
    chain.parent = {-1, 0, 1, 2, 3, 4, 5};
    for (int depth = 0; depth < 4; ++depth) {
      chain.tokens[3 + depth] = rows.tokens[3 + branch + 3 * depth];
    }
    const auto chain_kv = head->make_kv(32).value();
    Output out;
    for (int row = 0; row < 7; ++row) run(*head, *chain_kv, chain, slots, row, row + 1, &out);
    for (int depth = 0; depth < 4; ++depth) {
      EXPECT_EQ(
          0, std::memcmp(out.logits.data() + (3 + depth) * law,
                         tree.logits.data() + (3 + branch + 3 * depth) * law, law * sizeof(float)));
    }
  }
}

// y = W x with the weights and activations that the kernels see, in double.
std::vector<double> product(const LinearWeights& weights, const std::vector<double>& x) {
  std::vector<double> y(weights.outputs);
  std::vector<float> row(weights.inputs);
  for (int output = 0; output < weights.outputs; ++output) {
    kernels().embed(weights, output, 1.f, row.data());
    for (int i = 0; i < weights.inputs; ++i) y[output] += static_cast<double>(row[i]) * x[i];
  }
  return y;
}

std::vector<double> normed(const std::vector<double>& x, const float* weight, double epsilon) {
  double square = 0;
  for (const double value : x) square += value * value;
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = weight[i] * x[i] / std::sqrt(square / static_cast<double>(x.size()) + epsilon);
  }
  return y;
}

// z of draft_input.h, without quantised activations.
std::vector<double> folded(const Pair& pair, int32_t token, std::vector<double> g, bool fuse) {
  const Weights tensors = pair.draft->tensors();
  const double epsilon = pair.draft->manifest().spec.norm_epsilon;
  if (fuse) g = product(tensors.linear("fuse"), g);
  std::vector<float> embedded(pair.target->spec().hidden_size);
  kernels().embed(pair.target->embedding(), token, pair.target->spec().embedding_scale,
                  embedded.data());
  std::vector<double> both =
      normed({embedded.begin(), embedded.end()}, tensors.values("embedding_norm").data(), epsilon);
  const std::vector<double> state = normed(g, tensors.values("feature_norm").data(), epsilon);
  both.insert(both.end(), state.begin(), state.end());
  return product(tensors.linear("input"), both);
}

double distance(const std::vector<double>& a, const float* b) {
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += a[i] * a[i];
  }
  return std::sqrt(difference / size);
}

TEST(ParallelHeads, EveryDepthIsWhatItsFormulaSaysUpToTheRoundingOfActivations) {
  const Pair pair = pair_of("gemma3", {.kind = DraftKind::kParallelHeads, .parallel = 4});
  const auto heads = ParallelHeads::open(pair.draft, pair.target, {.threads = 2}).value();
  const DraftManifest& manifest = pair.draft->manifest();
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> features(manifest.feature_size());
  for (float& value : features) value = normal(random);
  std::vector<float> logits(4 * static_cast<size_t>(manifest.subset));
  const TextVocabulary vocabulary = heads->make_vocabulary();
  ASSERT_TRUE(heads->forward(17, features, vocabulary, logits).ok());
  const std::vector<double> z = folded(pair, 17, {features.begin(), features.end()}, true);
  const Weights tensors = pair.draft->tensors();
  for (int depth = 0; depth < 4; ++depth) {
    std::vector<double> state = product(tensors.linear("parallel." + std::to_string(depth)), z);
    for (size_t i = 0; i < z.size(); ++i) state[i] = z[i] + state[i] / (1 + std::exp(-state[i]));
    const auto law =
        product(tensors.linear("head"),
                normed(state, tensors.values("output_norm").data(), manifest.spec.norm_epsilon));
    EXPECT_LT(distance(law, logits.data() + depth * manifest.subset), 0.03) << depth;
    const std::optional<float> uncertainty = heads->uncertainty(depth);
    ASSERT_TRUE(uncertainty.has_value());
    EXPECT_GT(*uncertainty, 0.f);
    EXPECT_LT(*uncertainty, 1.f);
  }
  EXPECT_EQ(heads->forward(160, features, vocabulary, logits).code(), Code::kInvalidArgument);
  EXPECT_EQ(heads->forward(1, {}, vocabulary, logits).code(), Code::kInvalidArgument);
}

// The layer itself is the target's own kernel; that it gets the input that it should, and that its
// output goes through the head, shows against the layer run on its own.
TEST(DraftHead, ALoneRowIsTheLayerOverItsFoldedInput) {
  for (const bool verified : {true, false}) {
    const Pair pair = pair_of("llama");
    const auto head = head_of(pair);
    const DraftManifest& manifest = pair.draft->manifest();
    const size_t hidden = manifest.spec.hidden_size;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> given(verified ? manifest.feature_size() : hidden);
    for (float& value : given) value = normal(random);
    const std::vector<int32_t> token = {42}, zero = {0}, one = {1};
    const RowBatch batch{token, zero, zero, {}, zero, zero, one, zero};
    const auto kv = head->make_kv(16).value();
    std::vector<float> logits(manifest.subset);
    const std::span<const float> nothing;
    ASSERT_TRUE(head->forward(batch, verified ? std::span<const float>(given) : nothing,
                              verified ? nothing : std::span<const float>(given),
                              head->make_vocabulary(), *kv, logits)
                    .ok());
    const std::vector<double> z = folded(pair, 42, {given.begin(), given.end()}, verified);
    std::vector<float> state(z.begin(), z.end());
    ThreadTeam team(1);
    const LayerShape shape = manifest.spec.layer_shape(0);
    LayerWorkspace workspace(shape, 1, 16, 1);
    std::vector<float> rotary(manifest.spec.head_dim);
    rotary_table(zero, pair.target->rope_global(), rotary.data());
    const auto other_kv = head->make_kv(16).value();
    team.run([&](int thread) {
      decoder_layer(shape, pair.draft->tensors().layer("layer."), batch, rotary.data(),
                    other_kv->layer(0), state.data(), workspace, team, thread);
    });
    const std::vector<double> expected(state.begin(), state.end());
    EXPECT_LT(distance(expected, head->states().data()), 0.05) << verified;
    const std::vector<double> seen(head->states().begin(), head->states().end());
    const auto law = product(pair.draft->tensors().linear("head"),
                             normed(seen, pair.draft->tensors().values("output_norm").data(),
                                    manifest.spec.norm_epsilon));
    EXPECT_LT(distance(law, logits.data()), 0.03) << verified;
    const std::optional<float> uncertainty = head->uncertainty(head->states().first(hidden));
    ASSERT_TRUE(uncertainty.has_value());
    EXPECT_GE(*uncertainty, 0.f);
  }
  const auto without = head_of(pair_of("llama", {.uncertainty_units = 0}));
  EXPECT_FALSE(without->uncertainty(std::vector<float>(64, 1.f)).has_value());
}

TEST(DraftHead, RefusesABatchThatDoesNotFitAndChangesNothing) {
  const auto head = head_of(pair_of("llama"), 1, 4);
  const auto kv = head->make_kv(16).value();
  const std::vector<int32_t> tokens = {1, 2}, positions = {0, 1}, slots = {0, 1}, begin = {0, 0},
                             end = {1, 2}, outputs = {0, 1}, outside = {1, 160};
  std::vector<float> features(2 * static_cast<size_t>(head->manifest().feature_size()));
  std::vector<float> logits(2 * static_cast<size_t>(head->manifest().subset));
  RowBatch batch{tokens, positions, slots, {}, slots, begin, end, outputs};
  const std::span<const float> all(features);
  const TextVocabulary vocabulary = head->make_vocabulary();
  EXPECT_TRUE(head->forward(batch, all, {}, vocabulary, *kv, logits).ok());
  EXPECT_FALSE(
      head->forward(batch, all.first(features.size() - 1), {}, vocabulary, *kv, logits).ok());
  EXPECT_FALSE(
      head->forward(batch, all.first(features.size() / 2), {}, vocabulary, *kv, logits).ok());
  EXPECT_FALSE(
      head->forward(batch, all, {}, vocabulary, *kv, std::span(logits).first(logits.size() - 1))
          .ok());
  batch.tokens = outside;
  EXPECT_FALSE(head->forward(batch, all, {}, vocabulary, *kv, logits).ok());
}

}  // namespace
}  // namespace sapwood
