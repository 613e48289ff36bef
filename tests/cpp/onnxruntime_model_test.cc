// The ONNX Runtime host: the native host's bits, over the same bundle and the KV store's own
// memory.
#ifdef SAPWOOD_WITH_ONNXRUNTIME

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "kernel_fixtures.h"
#include "make_test_bundle.h"
#include "model/native.h"
#include "model/onnxruntime.h"
#include "model/onnxruntime_library.h"
#include "temporary_folder.h"
#include "write_onnx_graph.h"

#if defined(__SANITIZE_THREAD__)
// ONNX Runtime's library is not instrumented, so its own locks look like races when it shuts down.
extern "C" const char* __tsan_default_suppressions() { return "race:libonnxruntime.so"; }
#endif

namespace sapwood::testing {
namespace {

constexpr int kSlots = 128;

std::string onnx_bundle(const TestBundleOptions& options, const ModelSpec& graph_spec) {
  const Result<std::string> folder = write_test_bundle(options);
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  const Status written = write_onnx_graph(folder.value(), graph_spec);
  EXPECT_TRUE(written.ok()) << written.message();
  return folder.value();
}

std::string onnx_bundle(const char* family) {
  const TestBundleOptions options = test_bundle_options(family);
  return onnx_bundle(options, options.spec);
}

std::shared_ptr<const Bundle> open_bundle(const std::string& folder) {
  Result<Bundle> bundle = Bundle::open(folder);
  EXPECT_TRUE(bundle.ok()) << bundle.status().message();
  return std::make_shared<const Bundle>(std::move(bundle).value());
}

std::unique_ptr<KvStore> store(const ModelSpec& spec, int slots = kSlots) {
  auto kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, slots);
  EXPECT_TRUE(kv.ok());
  return std::move(kv).value();
}

std::vector<float> forward(Model& model, KvStore& kv, const RowBatch& batch) {
  std::vector<float> logits(batch.output_rows.size() * model.spec().vocabulary_size);
  const Status status = model.forward(batch, kv, logits);
  EXPECT_TRUE(status.ok()) << status.message();
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool same_cache(const KvStore& a, const KvStore& b) {
  for (int layer = 0; layer < a.layers(); ++layer) {
    const size_t bytes = a.layout().elements() * sizeof(uint16_t);
    if (std::memcmp(a.layer(layer).keys, b.layer(layer).keys, bytes) != 0) return false;
    if (std::memcmp(a.layer(layer).values, b.layer(layer).values, bytes) != 0) return false;
  }
  return true;
}

// The library of the wheel in this checkout's virtual environment, unless a variable names another.
std::string library() {
  namespace fs = std::filesystem;
  if (std::getenv("SAPWOOD_ONNXRUNTIME_LIBRARY") != nullptr) return "";
  std::error_code error;
  for (const auto& python : fs::directory_iterator(SAPWOOD_SOURCE_DIR "/.venv/lib", error)) {
    const fs::path folder = python.path() / "site-packages/onnxruntime/capi";
    for (const auto& file : fs::directory_iterator(folder, error)) {
      if (file.path().filename().string().starts_with("libonnxruntime.so")) return file.path();
    }
  }
  return "";
}

// Skips where the library is not there: it is no dependency of the build.
class OnnxRuntimeHost : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<const OrtApi*> api = load_onnxruntime(library());
    if (!api.ok()) GTEST_SKIP() << api.status().message();
  }

  static std::unique_ptr<Model> open(const std::shared_ptr<const Bundle>& bundle, int threads = 1) {
    auto model = open_onnxruntime_model(bundle, {threads, 96, library()});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }
  static std::unique_ptr<Model> open_native(const std::shared_ptr<const Bundle>& bundle) {
    auto model = open_native_model(bundle, {1, 96});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(model).value();
  }

  // What opening that bundle says: one line.
  static std::string refusal(const std::string& folder, int threads = 1) {
    const auto model = open_onnxruntime_model(open_bundle(folder), {threads, 8, library()});
    EXPECT_FALSE(model.ok());
    EXPECT_EQ(std::string::npos, model.status().message().find('\n'));
    return model.status().message();
  }
};

class OnnxRuntimeFamilies : public OnnxRuntimeHost,
                            public ::testing::WithParamInterface<const char*> {};

TEST_P(OnnxRuntimeFamilies, GivesTheNativeHostsLogitsAndCacheBitForBit) {
  const auto bundle = open_bundle(onnx_bundle(GetParam()));
  const auto native = open_native(bundle);
  for (const int threads : {1, 2, 3}) {
    const auto model = open(bundle, threads);
    EXPECT_EQ("onnxruntime", model->host());
    Random random(3);
    for (const int rows : {1, 2, 5, 24, 64}) {
      for (const int context : {0, 1, 30}) {
        const TreeBatch tree(random, rows, context, kSlots, false, false);
        const auto native_kv = store(native->spec());
        const auto kv = store(native->spec());
        EXPECT_TRUE(same_bits(forward(*native, *native_kv, tree.batch()),
                              forward(*model, *kv, tree.batch())))
            << rows << " rows, " << context << " context, " << threads << " threads";
        EXPECT_TRUE(same_cache(*native_kv, *kv));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, OnnxRuntimeFamilies,
                         ::testing::Values("llama", "qwen2", "qwen3", "gemma3"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(OnnxRuntimeHost, ServesSeveralStoresInTurn) {
  const auto bundle = open_bundle(onnx_bundle("llama"));
  const auto native = open_native(bundle);
  const auto model = open(bundle);
  const auto small = store(model->spec(), 64);
  const auto large = store(model->spec(), 160);
  const auto native_small = store(model->spec(), 64);
  const auto native_large = store(model->spec(), 160);
  Random random(8);
  for (int turn = 0; turn < 3; ++turn) {
    const TreeBatch tree(random, 4, 10, 64, false, false);
    EXPECT_TRUE(same_bits(forward(*native, *native_small, tree.batch()),
                          forward(*model, *small, tree.batch())));
    EXPECT_TRUE(same_bits(forward(*native, *native_large, tree.batch()),
                          forward(*model, *large, tree.batch())));
  }
  EXPECT_TRUE(same_cache(*native_small, *small));
  EXPECT_TRUE(same_cache(*native_large, *large));
}

TEST_F(OnnxRuntimeHost, SeveralModelsLiveInOneProcess) {
  const auto llama = open_bundle(onnx_bundle("llama"));
  const auto gemma = open_bundle(onnx_bundle("gemma3"));
  auto first = open(llama);
  const auto second = open(gemma, 2);
  Random random(9);
  const TreeBatch tree(random, 6, 12, kSlots, false, false);
  const auto llama_kv = store(first->spec());
  const auto gemma_kv = store(second->spec());
  const std::vector<float> before = forward(*second, *gemma_kv, tree.batch());
  forward(*first, *llama_kv, tree.batch());
  first.reset();
  EXPECT_TRUE(same_bits(before, forward(*second, *gemma_kv, tree.batch())));
}

TEST_F(OnnxRuntimeHost, GivesNoLogitsWhereNoneAreAskedFor) {
  const auto bundle = open_bundle(onnx_bundle("llama"));
  const auto model = open(bundle);
  const auto kv = store(model->spec());
  Random random(2);
  TreeBatch tree(random, 3, 5, kSlots, true, false);
  tree.outputs.clear();
  EXPECT_TRUE(model->forward(tree.batch(), *kv, {}).ok());
}

TEST_F(OnnxRuntimeHost, RefusesABatchThatDoesNotFitAndChangesNothing) {
  const auto bundle = open_bundle(onnx_bundle("llama"));
  const auto model = open(bundle);
  const auto kv = store(model->spec(), 32);
  const auto untouched = store(model->spec(), 32);
  Random random(1);
  TreeBatch tree(random, 4, 3, 32, false, false);
  tree.slots[1] = 32;
  std::vector<float> logits(4 * model->spec().vocabulary_size);
  EXPECT_EQ(Code::kInvalidArgument, model->forward(tree.batch(), *kv, logits).code());
  EXPECT_TRUE(same_cache(*untouched, *kv));
}

TEST_F(OnnxRuntimeHost, NamesABundleWithoutAGraph) {
  const Result<std::string> folder = write_test_bundle(test_bundle_options("llama"));
  ASSERT_TRUE(folder.ok());
  EXPECT_NE(std::string::npos, refusal(folder.value()).find("holds no ONNX graph"));
}

TEST_F(OnnxRuntimeHost, NamesAGraphThatIsGoneSinceTheBundleWasOpened) {
  const std::string folder = onnx_bundle("llama");
  const auto bundle = open_bundle(folder);
  std::filesystem::remove(folder + "/target.onnx");
  const auto model = open_onnxruntime_model(bundle, {});
  ASSERT_FALSE(model.ok());
  EXPECT_NE(std::string::npos, model.status().message().find("target.onnx: is missing"));
}

TEST_F(OnnxRuntimeHost, NamesAGraphThatIsNone) {
  const Result<std::string> folder = write_test_bundle(test_bundle_options("llama"));
  ASSERT_TRUE(folder.ok());
  ASSERT_TRUE(write_onnx_file(folder.value(), "this is no graph").ok());
  EXPECT_NE(std::string::npos, refusal(folder.value()).find("target.onnx: "));
}

TEST_F(OnnxRuntimeHost, NamesTheInputOfAGraphThatWasMadeForAnotherModel) {
  const TestBundleOptions options = test_bundle_options("llama");
  ModelSpec fewer_layers = options.spec;
  fewer_layers.layers -= 1;
  EXPECT_NE(
      std::string::npos,
      refusal(onnx_bundle(options, fewer_layers)).find("input 'past_keys.3' is missing; export"));
  ModelSpec wider = options.spec;  // its weights do not fit its attributes
  wider.intermediate_size += 32;
  EXPECT_NE(std::string::npos, refusal(onnx_bundle(options, wider)).find("input 'gate_up' has"));
}

TEST_F(OnnxRuntimeHost, RefusesThreadsThatMakeNoSense) {
  const std::string folder = onnx_bundle("llama");
  for (const int threads : {0, -1, 257}) {
    EXPECT_NE(std::string::npos, refusal(folder, threads).find("threads: "));
  }
}

TEST(OnnxRuntimeLibrary, IsNamedWhereItCannotBeLoaded) {
  const auto api = load_onnxruntime("/nowhere/libonnxruntime.so");
  ASSERT_FALSE(api.ok());
  EXPECT_EQ(Code::kNotFound, api.status().code());
  EXPECT_NE(std::string::npos, api.status().message().find("/nowhere/libonnxruntime.so"));
  EXPECT_NE(std::string::npos, api.status().message().find("SAPWOOD_ONNXRUNTIME_LIBRARY"));
}

TEST(OnnxRuntimeLibrary, IsRefusedWhereItIsAnotherLibrary) {
  const auto api = load_onnxruntime("libm.so.6");
  ASSERT_FALSE(api.ok());
  EXPECT_NE(std::string::npos, api.status().message().find("libm.so.6: is no ONNX Runtime"));
}

TEST(OnnxRuntimeLibrary, IsRefusedWhereItIsOlderThanTheInterfaceWeUse) {
  for (const char* version : {"1.23.2", "1.9.0", "0.99.1", "", "next"}) {
    const Status status = check_onnxruntime_version(version);
    EXPECT_EQ(Code::kUnsupported, status.code()) << version;
    EXPECT_NE(std::string::npos, status.message().find("1.24 or later is needed")) << version;
  }
  for (const char* version : {"1.24.0", "1.32.0", "1.100.0", "2.0.0", "1.24.0-dev"}) {
    EXPECT_TRUE(check_onnxruntime_version(version).ok()) << version;
  }
}

}  // namespace
}  // namespace sapwood::testing

#endif  // SAPWOOD_WITH_ONNXRUNTIME
