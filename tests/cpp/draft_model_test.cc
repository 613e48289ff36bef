#include "model/draft_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/sha256.h"
#include "make_test_bundle.h"
#include "temporary_folder.h"
#include "tree/row_layout.h"

namespace sapwood {
namespace {

using nlohmann::json;

std::string folder_of(const TestBundleOptions& options) {
  const Result<std::string> folder = write_test_bundle(options);
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  return folder.value();
}

std::shared_ptr<const Bundle> open(const std::string& folder) {
  Result<Bundle> bundle = Bundle::open(folder);
  EXPECT_TRUE(bundle.ok()) << bundle.status().message();
  return std::make_shared<const Bundle>(std::move(bundle).value());
}

json manifest_of(const std::string& folder) {
  return json::parse(read_file(folder + "/manifest.json", 1 << 24).value());
}

void write_manifest(const std::string& folder, const json& manifest) {
  write_text(folder + "/manifest.json", manifest.dump());
}

std::string with_early_exit(const std::string& family, int layers) {
  const std::string folder = folder_of(test_bundle_options(family));
  json manifest = manifest_of(folder);
  manifest["drafters"] = {{{"kind", "early_exit"}, {"layers", layers}}};
  write_manifest(folder, manifest);
  return folder;
}

// Another tokenizer.json, listed with its size and checksum.
void replace_tokenizer(const std::string& folder, const std::string& text) {
  write_text(folder + "/tokenizer.json", text);
  json manifest = manifest_of(folder);
  for (json& file : manifest["files"]) {
    if (file["name"] != "tokenizer.json") continue;
    file["bytes"] = text.size();
    file["sha256"] =
        hexadecimal(sha256({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  }
  write_manifest(folder, manifest);
}

struct PassOutcome {
  std::unique_ptr<KvStore> kv;
  std::vector<float> logits;
};

PassOutcome run_pass(Model& model, const std::vector<int32_t>& tokens) {
  const ModelSpec& spec = model.spec();
  PassOutcome run;
  run.kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, 64).value();
  run.logits.resize(spec.vocabulary_size);
  std::vector<int32_t> slots(tokens.size());
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(i);
  RowLayout layout(static_cast<int>(tokens.size()));
  RowBatch batch = layout.text_rows(tokens, {}, slots);
  const std::vector<int32_t> last = {static_cast<int32_t>(tokens.size()) - 1};
  batch.output_rows = last;
  EXPECT_TRUE(model.forward(batch, *run.kv, run.logits).ok());
  return run;
}

TEST(EarlyExit, RunsTheTargetsFirstLayersBitForBit) {
  const std::vector<int32_t> tokens = {5, 9, 2, 7, 7, 1, 30, 4, 80, 12, 3};
  for (const std::string family : {"llama", "qwen2", "qwen3", "gemma3"}) {
    const auto bundle = open(folder_of(test_bundle_options(family)));
    const auto whole = open_native_model(bundle, {.threads = 2}).value();
    const PassOutcome expected = run_pass(*whole, tokens);
    for (int layers = 1; layers <= bundle->spec().layers; ++layers) {
      const auto model = open_native_model(bundle, {.threads = 2, .layers = layers}).value();
      ASSERT_EQ(model->spec().layers, layers);
      const PassOutcome found = run_pass(*model, tokens);
      for (int layer = 0; layer < layers; ++layer) {
        const KvLayerView a = found.kv->layer(layer);
        const KvLayerView b = expected.kv->layer(layer);
        const size_t bytes = a.layout.elements() * sizeof(uint16_t);
        ASSERT_EQ(std::memcmp(a.keys, b.keys, bytes), 0) << family << ' ' << layers;
        ASSERT_EQ(std::memcmp(a.values, b.values, bytes), 0) << family << ' ' << layers;
      }
      EXPECT_EQ(found.logits == expected.logits, layers == bundle->spec().layers) << family;
    }
  }
}

TEST(EarlyExit, HasTheLayersThatTheBundleSaysAndTheTargetsThreads) {
  const auto bundle = open(with_early_exit("gemma3", 3));
  EXPECT_EQ(bundle->manifest().early_exit_layers(), 3);
  const auto target = open_native_model(bundle, {.threads = 2}).value();
  const auto model = open_early_exit(bundle, {.team = target->team()});
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model.value()->spec().layers, 3);
  EXPECT_EQ(model.value()->team(), target->team());
}

TEST(EarlyExit, IsRefusedWhereThereIsNoneOrItCannotBe) {
  const std::string folder = folder_of(test_bundle_options("llama"));
  const auto none = open_early_exit(open(folder), {});
  EXPECT_EQ(none.status().code(), Code::kNotFound);
  EXPECT_NE(none.status().message().find("--early-exit"), std::string::npos);
  EXPECT_NE(none.status().message().find(folder), std::string::npos);
  for (const int layers : {-1, 0, 4, 5}) {  // of 4
    EXPECT_EQ(Bundle::open(with_early_exit("llama", layers)).status().code(), Code::kCorrupt);
  }
  EXPECT_EQ(open_native_model(open(folder), {.layers = 5}).status().code(), Code::kInvalidArgument);
}

TEST(DraftModel, AnotherModelOfTheSameVocabularyFits) {
  const auto target = open(folder_of(test_bundle_options("llama")));
  TestBundleOptions smaller = test_bundle_options("qwen3");
  smaller.spec.layers = 2;
  smaller.spec.layer_is_sliding.resize(2);
  const std::string folder = folder_of(smaller);
  EXPECT_TRUE(open_draft_model(*target, open(folder), {}).ok());
  // The same tokens, in a file that is another.
  const json tokenizer = json::parse(read_file(folder + "/tokenizer.json", 1 << 24).value());
  replace_tokenizer(folder, tokenizer.dump(3));
  EXPECT_TRUE(open_draft_model(*target, open(folder), {}).ok());
}

TEST(DraftModel, OneWithAnotherVocabularyIsRefusedByNameAndReason) {
  const auto target = open(folder_of(test_bundle_options("llama")));
  TestBundleOptions larger = test_bundle_options("llama");
  larger.spec.vocabulary_size = 192;
  const std::string wide = folder_of(larger);
  const Status sizes = open_draft_model(*target, open(wide), {}).status();
  EXPECT_EQ(sizes.code(), Code::kInvalidArgument);
  EXPECT_NE(sizes.message().find(wide), std::string::npos);
  EXPECT_NE(sizes.message().find("192 tokens and the target has 160"), std::string::npos);

  const std::string folder = folder_of(test_bundle_options("llama"));
  json tokenizer = json::parse(read_file(folder + "/tokenizer.json", 1 << 24).value());
  json& words = tokenizer["model"]["vocab"];
  std::swap(words["t17"], words["t18"]);
  replace_tokenizer(folder, tokenizer.dump());
  const Status swapped = open_draft_model(*target, open(folder), {}).status();
  EXPECT_EQ(swapped.code(), Code::kInvalidArgument);
  EXPECT_NE(swapped.message().find("token 17 is \"t18\" and the target's is \"t17\""),
            std::string::npos)
      << swapped.message();

  tokenizer["model"]["vocab"] = json::object();
  replace_tokenizer(folder, tokenizer.dump());
  EXPECT_EQ(open_draft_model(*target, open(folder), {}).status().code(), Code::kCorrupt);
  // Added tokens name what the vocabulary does not, and win where both do.
  words["t17"] = 17;
  tokenizer["added_tokens"] = {{{"id", 17}, {"content", "other"}}};
  replace_tokenizer(folder, tokenizer.dump());
  EXPECT_NE(open_draft_model(*target, open(folder), {}).status().message().find("token 0"),
            std::string::npos);
}

}  // namespace
}  // namespace sapwood
