// The native host: a row's logits are the same bits whatever stands beside it, wherever its slots
// lie, however many threads compute it and on every instruction set.
#include "model/native.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernel_fixtures.h"
#include "make_test_bundle.h"

namespace sapwood::testing {
namespace {

const char* const kFamilies[] = {"llama", "qwen2", "qwen3", "gemma3"};

std::shared_ptr<const Bundle> tiny_bundle(const char* family) {
  const Result<std::string> path = write_test_bundle(test_bundle_options(family));
  EXPECT_TRUE(path.ok()) << path.status().message();
  Result<Bundle> bundle = Bundle::open(path.value());
  EXPECT_TRUE(bundle.ok()) << bundle.status().message();
  return std::make_shared<const Bundle>(std::move(bundle).value());
}

std::unique_ptr<Model> open(std::shared_ptr<const Bundle> bundle, int threads = 1) {
  auto model = open_native_model(std::move(bundle), {threads, 96});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

std::unique_ptr<KvStore> store(const ModelSpec& spec, int slots,
                               KvFormat format = KvFormat::kFloat16) {
  auto kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, slots, format);
  EXPECT_TRUE(kv.ok());
  return std::move(kv).value();
}

// Runs a chain of tokens as the committed prefix, then the batch; returns the batch's logits.
std::vector<float> run(Model& model, KvStore& kv, const TreeBatch& tree, const RowBatch& batch) {
  std::vector<int32_t> tokens, positions, begin, end;
  for (size_t i = 0; i < tree.context.size(); ++i) {
    tokens.push_back(static_cast<int32_t>(i * 7 % model.spec().vocabulary_size));
    positions.push_back(static_cast<int32_t>(i));
    begin.push_back(0);
    end.push_back(static_cast<int32_t>(i) + 1);
  }
  if (!tokens.empty()) {
    const RowBatch prompt{tokens, positions, tree.context, {}, tree.context, begin, end, {}};
    const Status status = model.forward(prompt, kv, {});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  std::vector<float> logits(batch.output_rows.size() * model.spec().vocabulary_size);
  const Status status = model.forward(batch, kv, logits);
  EXPECT_TRUE(status.ok()) << status.message();
  return logits;
}

class EveryFamily : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryFamily, GivesEachOf64RowsTheBitsItHasAlone) {
  const auto bundle = tiny_bundle(GetParam());
  const auto model = open(bundle);
  const int vocabulary = model->spec().vocabulary_size;
  Random random(11);
  for (const auto& [chain, format] : {std::pair{false, KvFormat::kFloat16},
                                      {true, KvFormat::kFloat16},
                                      {false, KvFormat::kInt8},
                                      {true, KvFormat::kInt8}}) {
    const TreeBatch tree(random, 64, 21, 128, chain, false);
    // Alone: one row a pass, parents first, over a store of its own.
    const auto alone_kv = store(model->spec(), 128, format);
    std::vector<float> alone;
    {
      const std::vector<float> root = run(*model, *alone_kv, tree, tree.single(0));
      alone.insert(alone.end(), root.begin(), root.end());
      for (int row = 1; row < 64; ++row) {
        std::vector<float> logits(vocabulary);
        ASSERT_TRUE(model->forward(tree.single(row), *alone_kv, logits).ok());
        alone.insert(alone.end(), logits.begin(), logits.end());
      }
    }
    for (int rows = 1; rows <= 64; ++rows) {
      const auto kv = store(model->spec(), 128, format);
      TreeBatch part = tree;
      for (auto* list :
           {&part.tokens, &part.positions, &part.slots, &part.begin, &part.end, &part.outputs}) {
        list->resize(rows);
      }
      const std::vector<float> together = run(*model, *kv, part, part.batch());
      ASSERT_EQ(0, std::memcmp(alone.data(), together.data(), together.size() * sizeof(float)))
          << rows << " rows";
    }
  }
}

TEST_P(EveryFamily, GivesTheSameBitsForAnyThreadsSlotsAndInstructionSet) {
  const auto bundle = tiny_bundle(GetParam());
  std::vector<float> firsts[2];  // of each format
  const std::string chosen(kernels().name);
  for (const KernelTable* table : runnable_kernels()) {
    ASSERT_TRUE(set_kernels(table->name));
    for (int threads = 1; threads <= 4; ++threads) {
      for (const bool shuffle : {false, true}) {
        const auto model = open(bundle, threads);
        Random random(5);
        TreeBatch tree(random, 13, 30, 64, false, false);
        if (shuffle) {  // the same batch over other slots
          std::vector<int32_t> moved(64);
          for (int i = 0; i < 64; ++i) moved[i] = i;
          std::shuffle(moved.begin(), moved.end(), random);
          for (auto* list : {&tree.slots, &tree.context, &tree.paths}) {
            for (int32_t& slot : *list) slot = moved[slot];
          }
        }
        for (const KvFormat format : {KvFormat::kFloat16, KvFormat::kInt8}) {
          const auto kv = store(model->spec(), 64, format);
          const std::vector<float> logits = run(*model, *kv, tree, tree.batch());
          std::vector<float>& first = firsts[format == KvFormat::kInt8];
          if (first.empty()) first = logits;
          EXPECT_EQ(0, std::memcmp(first.data(), logits.data(), logits.size() * sizeof(float)))
              << table->name << ", " << threads << " threads, " << kv_format_name(format);
        }
      }
    }
  }
  EXPECT_FALSE(same_bits(firsts[0], firsts[1])) << "both formats ran the same thing";
  set_kernels(chosen);
}

// The last layer stops after its K and V where nobody asked for more.
TEST_P(EveryFamily, FillsTheCacheAlikeWhetherOrNotLogitsAreWanted) {
  const auto model = open(tiny_bundle(GetParam()), 2);
  Random random(7);
  const TreeBatch chain(random, 20, 0, 32, true, true);
  std::vector<float> next[2];
  for (const bool wanted : {false, true}) {
    const auto kv = store(model->spec(), 32);
    RowBatch prompt = chain.batch();
    for (auto* list : {&prompt.tokens, &prompt.positions, &prompt.slots, &prompt.path_begin,
                       &prompt.path_end, &prompt.output_rows}) {
      *list = list->first(19);
    }
    std::vector<float> logits(19 * model->spec().vocabulary_size);
    if (!wanted) prompt.output_rows = {}, logits.clear();
    ASSERT_TRUE(model->forward(prompt, *kv, logits).ok());
    next[wanted].resize(model->spec().vocabulary_size);
    ASSERT_TRUE(model->forward(chain.single(19), *kv, next[wanted]).ok());
  }
  EXPECT_EQ(0, std::memcmp(next[0].data(), next[1].data(), next[0].size() * sizeof(float)));
}

// A model of the first so many layers must end where the whole one passed by; that these are the
// head's inputs shows in its logits.
TEST_P(EveryFamily, ShowsTheHiddenStatesThatAShorterModelEndsWith) {
  const auto bundle = tiny_bundle(GetParam());
  const auto whole = open(bundle, 2);
  const int layers = whole->spec().layers;
  const size_t width = whole->spec().hidden_size;
  std::vector<int> all(layers + 1);
  for (int layer = 0; layer <= layers; ++layer) all[layer] = layer;
  Random random(3);
  const TreeBatch tree(random, 9, 12, 64, false, false);
  const auto plain_kv = store(whole->spec(), 64);
  const std::vector<float> plain = run(*whole, *plain_kv, tree, tree.batch());
  EXPECT_TRUE(whole->hidden_states().empty());

  ASSERT_TRUE(whole->keep_hidden_states(all).ok());
  const auto kv = store(whole->spec(), 64);
  EXPECT_TRUE(same_bits(plain, run(*whole, *kv, tree, tree.batch())));
  const std::span<const float> shown = whole->hidden_states();
  ASSERT_EQ(tree.tokens.size() * all.size() * width, shown.size());
  const std::vector<float> kept(shown.begin(), shown.end());

  for (int part = 1; part <= layers; ++part) {
    auto shorter = open_native_model(bundle, {.threads = 1, .max_rows = 96, .layers = part});
    ASSERT_TRUE(shorter.ok());
    ASSERT_TRUE(shorter.value()->keep_hidden_states(std::array{0, part}).ok());
    const auto shorter_kv = store(shorter.value()->spec(), 64);
    RowBatch batch = tree.batch();
    batch.output_rows = {};  // the last layer is run in full all the same
    run(*shorter.value(), *shorter_kv, tree, batch);
    const std::span<const float> states = shorter.value()->hidden_states();
    ASSERT_EQ(tree.tokens.size() * 2 * width, states.size());
    for (size_t row = 0; row < tree.tokens.size(); ++row) {
      const float* of_row = kept.data() + row * all.size() * width;
      EXPECT_EQ(0, std::memcmp(of_row, states.data() + row * 2 * width, width * sizeof(float)));
      EXPECT_EQ(0, std::memcmp(of_row + part * width, states.data() + (row * 2 + 1) * width,
                               width * sizeof(float)))
          << "row " << row << " after layer " << part;
    }
  }
  ASSERT_TRUE(whole->keep_hidden_states({}).ok());
  EXPECT_TRUE(whole->hidden_states().empty());
}

TEST(NativeModel, RefusesToKeepHiddenStatesOfLayersThatItDoesNotHave) {
  const auto model = open(tiny_bundle("llama"));
  const int beyond = model->spec().layers + 1;
  for (const std::vector<int>& layers :
       {std::vector{-1}, std::vector{beyond}, std::vector{1, 1}, std::vector{2, 1}}) {
    const Status status = model->keep_hidden_states(layers);
    EXPECT_EQ(Code::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.message().find("ascending"));
  }
  EXPECT_TRUE(model->kept_layers().empty());
}

INSTANTIATE_TEST_SUITE_P(Families, EveryFamily, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param); });

TEST(NativeModel, RefusesABatchThatDoesNotFitAndChangesNothing) {
  const auto bundle = tiny_bundle("llama");
  const auto model = open(bundle);
  const auto kv = store(model->spec(), 32);
  Random random(1);
  const TreeBatch good(random, 4, 3, 32, false, false);
  std::vector<float> logits(4 * model->spec().vocabulary_size);
  const auto refused = [&](const TreeBatch& tree, const char* reason) {
    const Status status = model->forward(tree.batch(), *kv, logits);
    EXPECT_EQ(Code::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.message().find(reason)) << status.message();
  };
  TreeBatch bad = good;
  bad.tokens[2] = model->spec().vocabulary_size;
  refused(bad, "token");
  bad = good, bad.slots[1] = 32;
  refused(bad, "slot");
  bad = good, bad.positions[3] += 1;
  refused(bad, "path");
  bad = good, bad.outputs[0] = 4;
  refused(bad, "output row");
  bad = good, bad.end[3] = 1000;
  refused(bad, "path");
  bad = good, bad.begin.pop_back();
  refused(bad, "differ");
  const KvLayerView layer = kv->layer(0);
  for (size_t i = 0; i < layer.layout.elements(); ++i) ASSERT_EQ(0, layer.keys[i]);
  EXPECT_FALSE(model->forward(good.batch(), *kv, std::span(logits).first(10)).ok());
}

TEST(NativeModel, RefusesThreadsThatMakeNoSense) {
  const auto bundle = tiny_bundle("llama");
  for (const int threads : {0, -1, 257}) {
    EXPECT_FALSE(open_native_model(bundle, {threads, 8}).ok());
  }
}

}  // namespace
}  // namespace sapwood::testing
