#include "model/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "make_test_bundle.h"
#include "manifest_changes.h"
#include "model/tensors.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

using nlohmann::json;

const std::vector<std::string> kFamilies = {"llama", "qwen2", "qwen3", "gemma3"};

std::string test_bundle(const TestBundleOptions& options) {
  Result<std::string> folder = write_test_bundle(options);
  EXPECT_TRUE(folder.ok()) << folder.status().message();
  return folder.ok() ? folder.value() : "";
}

std::string open_error(const std::string& folder, const BundleOptions& options = {}) {
  const auto bundle = Bundle::open(folder, options);
  return bundle.ok() ? "no error" : bundle.status().message();
}

// The error after `change` has been at a good bundle's manifest, without the manifest's path.
std::string error_after(const std::function<void(json&)>& change,
                        const std::string& family = "gemma3") {
  const std::string folder = test_bundle(test_bundle_options(family));
  change_manifest(folder, change);
  return without_manifest_path(open_error(folder), folder);
}

// Overwrites bytes of a file.
void poke(const std::string& path, uint64_t offset, const void* bytes, size_t size) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  ASSERT_TRUE(file.good());
}

TEST(Bundle, EveryFamilyOpensAndGivesEveryTensorItsSpecDemands) {
  for (const std::string& family : kFamilies) {
    const TestBundleOptions options = test_bundle_options(family);
    const auto bundle = Bundle::open(test_bundle(options));
    ASSERT_TRUE(bundle.ok()) << bundle.status().message();
    const ModelSpec& spec = bundle->spec();
    EXPECT_EQ(spec.family, family);
    EXPECT_EQ(bundle->embedding().outputs, spec.vocabulary_size);
    EXPECT_EQ(bundle->head().data == bundle->embedding().data, spec.tied_head);
    EXPECT_EQ(bundle->rope_global().size(), static_cast<size_t>(spec.head_dim) / 2);
    EXPECT_EQ(bundle->rope_local().empty(), family != "gemma3");
    for (int i = 0; i < spec.layers; ++i) {
      const LayerWeights layer = bundle->layer(i);
      EXPECT_EQ(layer.qkv_bias != nullptr, spec.qkv_bias);
      EXPECT_EQ(layer.q_norm != nullptr, spec.qk_norm);
      EXPECT_EQ(layer.k_norm != nullptr, spec.qk_norm);
      EXPECT_EQ(layer.attention_post_norm != nullptr, spec.post_norms);
      EXPECT_EQ(layer.mlp_post_norm != nullptr, spec.post_norms);
      ASSERT_NE(layer.attention_norm, nullptr);
      ASSERT_NE(layer.mlp_norm, nullptr);
      EXPECT_EQ(layer.qkv.outputs, (spec.heads + 2 * spec.kv_heads) * spec.head_dim);
      EXPECT_EQ(layer.output.inputs, spec.heads * spec.head_dim);
      EXPECT_EQ(layer.gate_up.outputs, 2 * spec.intermediate_size);
      EXPECT_EQ(layer.down.inputs, spec.intermediate_size);
      EXPECT_EQ(layer.down.format, *parse_linear_format(options.layer_format));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(layer.qkv.data) % 64, 0u);
      EXPECT_EQ(spec.layer_shape(i).attention.window,
                spec.layer_is_sliding[i] ? spec.sliding_window : 0);
      EXPECT_EQ(bundle->rope(i).data(), spec.layer_is_sliding[i] ? bundle->rope_local().data()
                                                                 : bundle->rope_global().data());
    }
    for (const TensorShape& tensor : tensors_of(spec)) {
      if (tensor.matrix) {
        const LinearWeights weights = bundle->linear(tensor.name);
        ASSERT_NE(weights.data, nullptr) << tensor.name;
        EXPECT_EQ(weights.bytes(), bundle->manifest().tensors.find(tensor.name)->second.bytes);
        EXPECT_EQ(bundle->vector(tensor.name), nullptr);
      } else {
        EXPECT_EQ(bundle->values(tensor.name).size(), static_cast<size_t>(tensor.outputs));
        EXPECT_EQ(bundle->linear(tensor.name).data, nullptr);
      }
    }
  }
}

TEST(Bundle, EveryPackedFormatOpens) {
  for (const char* format :
       {"int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32"}) {
    TestBundleOptions options = test_bundle_options("llama");
    options.spec.hidden_size = 128;
    options.spec.intermediate_size = 256;
    options.spec.head_dim = 32;
    options.layer_format = format;
    options.embedding_format = format;
    const auto bundle = Bundle::open(test_bundle(options));
    ASSERT_TRUE(bundle.ok()) << bundle.status().message();
    EXPECT_EQ(linear_format_name(bundle->head().format), format);
  }
}

TEST(Bundle, WhatTheManifestSaysOfTokensFilesAndDefaultsIsGiven) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  json manifest = manifest_of(folder);
  manifest["tokenizer"]["bos_token_id"] = nullptr;
  manifest["tokenizer"]["eos_token_ids"] = {2, 159};
  manifest["defaults"]["context_length"] = 100000;
  manifest["drafters"] = {{{"kind", "n-gram"}}, {{"kind", "table"}, {"file", "tokenizer.json"}}};
  write_text(folder + "/manifest.json", manifest.dump());
  auto opened = Bundle::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const uint8_t* before = opened->embedding().data;
  const Bundle bundle = std::move(opened).value();
  EXPECT_EQ(bundle.embedding().data, before) << "moving a bundle must not move its weights";
  EXPECT_FALSE(bundle.tokenizer().bos_token_id.has_value());
  EXPECT_EQ(bundle.tokenizer().eos_token_ids, (std::vector<int>{2, 159}));
  EXPECT_EQ(bundle.file_path(bundle.tokenizer().file), folder + "/tokenizer.json");
  EXPECT_EQ(bundle.file_path(bundle.tokenizer().chat_template), "");
  EXPECT_EQ(bundle.file_path(bundle.manifest().onnx_file), "");
  EXPECT_EQ(bundle.manifest().default_mode, "dynamic");
  EXPECT_EQ(bundle.manifest().default_context_length, bundle.spec().context_length);
  ASSERT_EQ(bundle.manifest().drafters.size(), 2u);
  EXPECT_EQ(bundle.manifest().drafters[1].file, "tokenizer.json");
}

TEST(Bundle, AFolderWithoutAManifestIsNoBundle) {
  const std::string folder = temporary_folder();
  EXPECT_EQ(open_error(folder), folder +
                                    ": is not a bundle, there is no manifest.json in it; make "
                                    "one with `sapwood export`");
  EXPECT_EQ(Bundle::open(folder + "/none").status().code(), Code::kNotFound);
}

TEST(Bundle, ANewerSchemaSaysThatSapwoodMustBeUpdated) {
  // A newer manifest may look different everywhere else: nothing else must be complained of.
  const std::string folder = temporary_folder();
  write_text(folder + "/manifest.json", R"({"schema_version": 2, "something": "new"})");
  EXPECT_EQ(open_error(folder), folder +
                                    "/manifest.json: made by a newer Sapwood (bundle schema 2, "
                                    "this one reads up to 1): update Sapwood");
  EXPECT_EQ(Bundle::open(folder).status().code(), Code::kUnsupported);
}

TEST(Bundle, AnyChangedByteOfAnyFileIsFound) {
  for (const char* name : {"target.weights", "tokenizer.json"}) {
    const std::string folder = test_bundle(test_bundle_options("qwen3"));
    const std::string path = folder + "/" + name;
    const uint64_t size = file_size(path).value();
    for (const uint64_t offset : {uint64_t{0}, size / 2, size - 1}) {
      const std::string text = read_file(path, 1 << 24).value();
      const char changed = static_cast<char>(text[offset] ^ 1);
      poke(path, offset, &changed, 1);
      EXPECT_EQ(open_error(folder), path +
                                        ": was changed or damaged, its checksum is not "
                                        "manifest.json's; export the bundle again");
      EXPECT_EQ(open_error(folder, {.verify_checksums = false}), "no error");
      poke(path, offset, &text[offset], 1);
    }
    EXPECT_EQ(open_error(folder), "no error");
  }
}

TEST(Bundle, AMissingTruncatedOrLongerFileIsNamedEvenWithoutChecksums) {
  for (const char* name : {"target.weights", "tokenizer.json"}) {
    const std::string folder = test_bundle(test_bundle_options("llama"));
    const std::string path = folder + "/" + name;
    const uint64_t size = file_size(path).value();
    for (const uint64_t other : {uint64_t{0}, size - 1, size + 1}) {
      std::filesystem::resize_file(path, other);
      EXPECT_EQ(open_error(folder, {.verify_checksums = false}),
                path + ": has " + std::to_string(other) + " bytes, expected " +
                    std::to_string(size) + " as manifest.json says; export the bundle again");
    }
    std::filesystem::remove(path);
    EXPECT_EQ(open_error(folder, {.verify_checksums = false}),
              path + ": is missing, but manifest.json lists it; export the bundle again");
  }
}

TEST(Bundle, ATruncatedManifestIsNamedAtEveryLength) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  const std::string path = folder + "/manifest.json";
  const std::string text = read_file(path, 1 << 24).value();
  for (size_t length = 0; length + 2 < text.size(); length += 97) {
    write_text(path, text.substr(0, length));
    EXPECT_TRUE(open_error(folder).starts_with(path + ": is not valid JSON (line ")) << length;
  }
}

TEST(Bundle, AnEnormousManifestIsNotRead) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  std::filesystem::resize_file(folder + "/manifest.json", uint64_t{1} << 40);  // sparse
  EXPECT_EQ(open_error(folder), folder +
                                    "/manifest.json: has 1099511627776 bytes, at most 8388608 "
                                    "are allowed");
}

TEST(Bundle, AValueThatIsNotFiniteIsNamed) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  const auto offset_of = [&](const char* name) {
    return manifest_of(folder)["target"]["tensors"][name]["offset"].get<uint64_t>();
  };
  const std::string path = folder + "/target.weights";
  const float bad = std::nanf("");
  poke(path, offset_of("layers.1.mlp_norm") + 8, &bad, sizeof bad);
  EXPECT_EQ(open_error(folder, {.verify_checksums = false}),
            path +
                ": layers.1.mlp_norm holds a value that is not a finite number; export the "
                "bundle again");
}

TEST(Bundle, AnInfiniteScaleIsNamedEvenIfTheChecksumIsRight) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  json manifest = manifest_of(folder);
  const json& tensor = manifest["target"]["tensors"]["layers.2.down"];
  const uint64_t last_minimum =
      tensor["offset"].get<uint64_t>() + tensor["bytes"].get<uint64_t>() - 2;
  const std::string path = folder + "/target.weights";
  const uint16_t infinity = 0x7c00;
  poke(path, last_minimum, &infinity, sizeof infinity);
  const std::string bytes = read_file(path, 1 << 24).value();
  manifest["files"][0]["sha256"] =
      hexadecimal(sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  write_text(folder + "/manifest.json", manifest.dump());
  EXPECT_EQ(open_error(folder), path +
                                    ": layers.2.down holds a scale that is not a finite number; "
                                    "export the bundle again");
}

TEST(Bundle, WeightsInMemoryMustHaveTheManifestsSizeAndAlignment) {
  const std::string folder = test_bundle(test_bundle_options("llama"));
  const auto opened = Bundle::open(folder);
  ASSERT_TRUE(opened.ok());
  const FileMap map =
      FileMap::open(folder + "/target.weights", file_size(folder + "/target.weights").value())
          .value();
  EXPECT_TRUE(Bundle::over(opened->manifest(), map.bytes()).ok());
  EXPECT_FALSE(Bundle::over(opened->manifest(), map.bytes().first(64)).ok());
  std::vector<uint8_t> shifted(map.bytes().size() + 65);
  const size_t misaligned = 65 - reinterpret_cast<uintptr_t>(shifted.data()) % 64;
  EXPECT_FALSE(
      Bundle::over(opened->manifest(), std::span(shifted).subspan(misaligned, map.bytes().size()))
          .ok());
}

TEST(Manifest, EveryFieldIsNeeded) {
  const std::string folder = test_bundle(test_bundle_options("gemma3"));
  const json good = manifest_of(folder);
  const std::vector<std::string> free = {// Told to people, or optional and null here.
                                         "/source", "/quantization", "/target/onnx",
                                         "/tokenizer/chat_template", "/tokenizer/bos_token_id"};
  int removed = 0;
  const std::function<void(const json::json_pointer&)> visit = [&](const json::json_pointer& at) {
    if (!good.at(at).is_object()) return;
    for (const auto& [key, unused] : good.at(at).items()) {
      const json::json_pointer field = at / key;
      if (std::find(free.begin(), free.end(), field.to_string()) != free.end()) continue;
      json changed = good;
      changed.at(at).erase(key);
      const Status status = parse_manifest(changed.dump(), "m").status();
      EXPECT_TRUE(status.message().ends_with(key + " is missing")) << status.message();
      ++removed;
      visit(field);
    }
  };
  visit(json::json_pointer());
  EXPECT_GT(removed, 300);  // six layers of eleven tensors of five fields
}

TEST(Manifest, SizesThatCannotBeAreRefused) {
  const auto spec = [](const char* field, json value) {
    return error_after([&](json& m) { m["target"]["spec"][field] = value; });
  };
  EXPECT_EQ(spec("heads", 5), "target.spec.heads: 5 is not a multiple of kv_heads (2)");
  EXPECT_EQ(spec("heads", 64),
            "target.spec.heads: 32 query heads share a kv head, at most 16 are supported");
  EXPECT_EQ(spec("head_dim", 24), "target.spec.head_dim: 24 is not a multiple of 16");
  EXPECT_EQ(spec("hidden_size", 80), "target.spec.hidden_size: 80 is not a multiple of 32");
  EXPECT_EQ(spec("intermediate_size", 112),
            "target.spec.intermediate_size: 112 is not a multiple of 32");
  EXPECT_EQ(spec("layers", 0), "target.spec.layers: expected an integer from 1 to 1024, found 0");
  EXPECT_EQ(spec("layers", 7), "target.spec.layer_is_sliding: has 6 entries for 7 layers");
  EXPECT_EQ(spec("sliding_window", 0),
            "target.spec.sliding_window: is 0, but layer_is_sliding has sliding layers");
  EXPECT_EQ(spec("vocabulary_size", 1e300),
            "target.spec.vocabulary_size: expected an integer from 1 to 8388608, found 1e+300");
  EXPECT_EQ(spec("norm_epsilon", 0.0),
            "target.spec.norm_epsilon: expected a number from 1e-12 to 0.1, found 0.0");
  EXPECT_EQ(spec("attention_scale", "1"),
            "target.spec.attention_scale: expected a number from 1e-06 to 1000, found \"1\"");
  EXPECT_EQ(spec("activation", "relu"),
            "target.spec.activation: \"relu\" is not supported (silu, gelu_tanh)");
  EXPECT_EQ(spec("family", "mamba"),
            "target.spec.family: \"mamba\" is not a family this build knows (llama, qwen2, qwen3, "
            "gemma3): update Sapwood");
}

TEST(Manifest, TensorsThatDoNotFitTheSpecOrTheFileAreRefused) {
  const auto tensor = [](const char* name, const char* field, json value) {
    return error_after([&](json& m) { m["target"]["tensors"][name][field] = value; });
  };
  const char* down = "layers.0.down";
  EXPECT_EQ(tensor(down, "format", "int3"),
            "target.tensors.layers.0.down.format: \"int3\" is not a format this build knows: "
            "update Sapwood");
  EXPECT_EQ(tensor(down, "format", "float32"),
            "target.tensors.layers.0.down.format: expected a packed format, found \"float32\"");
  EXPECT_EQ(tensor("final_norm", "format", "int8_g32"),
            "target.tensors.final_norm.format: expected float32, found \"int8_g32\"");
  EXPECT_EQ(tensor(down, "format", "int4_g128"),
            "target.tensors.layers.0.down.format: \"int4_g128\" needs a multiple of 128 inputs, "
            "there are 96");
  EXPECT_EQ(tensor(down, "shape", {96, 64}),
            "target.tensors.layers.0.down.shape: does not fit the model's sizes, which ask for "
            "[64, 96]");
  EXPECT_EQ(tensor(down, "shape", json::array()),
            "target.tensors.layers.0.down.shape: does not fit the model's sizes, which ask for "
            "[64, 96]");
  EXPECT_EQ(
      tensor(down, "bytes", 3839),
      "target.tensors.layers.0.down.bytes: is 3839, but a tensor of this shape and format has "
      "3840");
  EXPECT_EQ(tensor(down, "offset", 32),
            "target.tensors.layers.0.down.offset: 32 is not a multiple of 64");
  const std::string behind = tensor(down, "offset", 1 << 30);
  EXPECT_TRUE(
      behind.starts_with("target.tensors.layers.0.down.offset: the tensor ends at byte "
                         "1073745664, behind the end of the weights file ("))
      << behind;
  EXPECT_TRUE(tensor(down, "offset", 0).ends_with("overlaps embedding") ||
              tensor(down, "offset", 0).ends_with("overlaps layers.0.down"));
  EXPECT_EQ(error_after([](json& m) { m["target"]["tensors"]["layers.9.qkv"] = json::object(); }),
            "target.tensors.layers.9.qkv: is a tensor that a model of this spec does not have");
}

TEST(Manifest, FileNamesThatLeaveTheFolderAreRefused) {
  for (const char* name :
       {"../secret", "/etc/passwd", "a/b", "a\\b", ".", "..", "", "a\nb", "c:d"}) {
    const std::string message = error_after([&](json& m) { m["files"][0]["name"] = name; });
    EXPECT_TRUE(message.ends_with(" is not the name of a file in the bundle's folder")) << message;
    const std::string used = error_after([&](json& m) { m["tokenizer"]["file"] = name; });
    EXPECT_TRUE(used.starts_with("tokenizer.file: ")) << used;
  }
}

TEST(Manifest, FilesMustBeListedOnceWithAChecksum) {
  EXPECT_EQ(error_after([](json& m) { m["tokenizer"]["file"] = "other.json"; }),
            "tokenizer.file: \"other.json\" is not in the manifest's list of files");
  EXPECT_EQ(error_after([](json& m) { m["target"]["onnx"] = "target.onnx"; }),
            "target.onnx: \"target.onnx\" is not in the manifest's list of files");
  EXPECT_EQ(error_after([](json& m) { m["files"].push_back(m["files"][0]); }),
            "files[2].name: \"target.weights\" is listed twice");
  EXPECT_EQ(error_after([](json& m) { m["files"][0]["name"] = "manifest.json"; }),
            "files[0].name: \"manifest.json\" cannot list itself");
  for (const char* digest :
       {"", "abc", "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"}) {
    EXPECT_EQ(error_after([&](json& m) { m["files"][0]["sha256"] = digest; }),
              "files[0].sha256: expected 64 lower-case hexadecimal digits");
  }
}

TEST(Manifest, NumbersAndOperatorsOfAnotherKindAreRefused) {
  const auto changed = [](const char* part, const char* field, json value) {
    return error_after([&](json& m) { m[part][field] = value; });
  };
  const std::string update = " is not supported by this build: update Sapwood";
  EXPECT_EQ(changed("operators", "version", 2), "operators.version: 2" + update);
  EXPECT_EQ(changed("operators", "domain", "x"), "operators.domain: \"x\"" + update);
  EXPECT_EQ(changed("numerics", "activation_bits", 16), "numerics.activation_bits: 16" + update);
  EXPECT_EQ(changed("numerics", "activation_group", 64), "numerics.activation_group: 64" + update);
  EXPECT_EQ(changed("numerics", "row_invariant", false), "numerics.row_invariant: false" + update);
  EXPECT_EQ(changed("numerics", "kv", "int8"), "numerics.kv: \"int8\"" + update);
  EXPECT_EQ(changed("tokenizer", "bos_token_id", 160),
            "tokenizer.bos_token_id: expected an integer from 0 to 159, found 160");
  EXPECT_EQ(changed("tokenizer", "eos_token_ids", {1, -1}),
            "tokenizer.eos_token_ids: expected only integers from 0 to 159 in the list, found -1");
  EXPECT_EQ(changed("defaults", "mode", "fast"),
            "defaults.mode: \"fast\" is not one of plain, chain, fixed, dynamic");
}

}  // namespace
}  // namespace sapwood
