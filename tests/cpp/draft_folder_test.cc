#include "model/draft_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "manifest_changes.h"
#include "model/draft_head.h"
#include "model/parallel_heads.h"
#include "temporary_folder.h"
#include "test_weights.h"

namespace sapwood {
namespace {

using nlohmann::json;

std::string bundle_folder(const std::string& family = "llama") {
  return write_test_bundle(test_bundle_options(family)).value();
}

std::shared_ptr<const Bundle> open_bundle(const std::string& folder) {
  return std::make_shared<const Bundle>(Bundle::open(folder).value());
}

std::string open_error(const std::string& folder) {
  const auto draft = DraftFolder::open(folder);
  return draft.ok() ? "no error" : draft.status().message();
}

// The error after `change` has been at a good draft's manifest, without the manifest's path.
std::string error_after(const std::function<void(json&)>& change,
                        const TestDraftOptions& options = {}) {
  const std::string folder = write_test_draft(bundle_folder(), options).value();
  change_manifest(folder, change);
  return without_manifest_path(open_error(folder), folder);
}

TEST(DraftFolder, OpensForEveryFamilyAndKindAndGivesEveryTensor) {
  for (const std::string family : {"llama", "qwen2", "qwen3", "gemma3"}) {
    for (const DraftKind kind : {DraftKind::kHead, DraftKind::kParallelHeads}) {
      const std::string target = bundle_folder(family);
      const auto folder = write_test_draft(target, {.kind = kind});
      ASSERT_TRUE(folder.ok()) << folder.status().message();
      auto draft = DraftFolder::open(folder.value());
      ASSERT_TRUE(draft.ok()) << draft.status().message();
      EXPECT_EQ(draft->manifest().kind, kind);
      EXPECT_EQ(draft->manifest().feature_size(), 3 * 64);
      for (const TensorShape& tensor : tensors_of_draft(draft->manifest())) {
        const Weights tensors = draft->tensors();
        if (tensor.matrix) {
          EXPECT_NE(tensors.linear(tensor.name).data, nullptr) << tensor.name;
        } else if (tensor.integers) {
          EXPECT_EQ(tensors.integers(tensor.name).size(), static_cast<size_t>(tensor.outputs));
          EXPECT_TRUE(tensors.values(tensor.name).empty());
        } else {
          EXPECT_EQ(tensors.values(tensor.name).size(),
                    static_cast<size_t>(tensor.outputs) * std::max(tensor.inputs, 1))
              << tensor.name;
        }
      }
      const auto bundle = open_bundle(target);
      EXPECT_TRUE(check_fits(draft.value(), *bundle).ok());
      const auto shared = std::make_shared<const DraftFolder>(std::move(draft).value());
      EXPECT_EQ(DraftHead::open(shared, bundle, {}).ok(), kind == DraftKind::kHead);
      EXPECT_EQ(ParallelHeads::open(shared, bundle, {}).ok(), kind == DraftKind::kParallelHeads);
    }
  }
}

TEST(DraftFolder, AManifestThatContradictsItselfIsRefusedByFieldAndReason) {
  EXPECT_EQ(error_after([](json&) {}), "no error");
  EXPECT_EQ(error_after([](json& m) { m["kind"] = "bundle"; }),
            "kind: \"bundle\" is not \"draft\"");
  EXPECT_NE(error_after([](json& m) { m.erase("kind"); }).find("this is no draft's manifest"),
            std::string::npos);
  EXPECT_NE(error_after([](json& m) { m["schema_version"] = 99; }).find("newer Sapwood"),
            std::string::npos);
  EXPECT_NE(error_after([](json& m) { m["draft"]["kind"] = "oracle"; }).find("update Sapwood"),
            std::string::npos);
  for (const json& layers : {json::array(), json({2, 2}), json({3, 1}), json({0, 1}), json({5})}) {
    const std::string message =
        error_after([&](json& m) { m["draft"]["feature_layers"] = layers; });
    EXPECT_TRUE(message.starts_with("draft.feature_layers: ")) << layers << ' ' << message;
  }
  for (const int subset : {0, 161}) {
    EXPECT_TRUE(
        error_after([&](json& m) { m["draft"]["subset"] = subset; }).starts_with("draft.subset: "));
  }
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["subset"] = 91;
              }).starts_with("draft.tensors.head.shape: does not fit"));
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["spec"]["heads"] = 3;
              }).starts_with("draft.spec.heads: 3 is not a multiple"));
  EXPECT_TRUE(
      error_after([](json& m) { m["draft"]["parallel"] = 3; }).starts_with("draft.parallel: "));
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["tensors"].erase("layer.qkv");
              }).starts_with("draft.tensors.layer.qkv is missing"));
  EXPECT_EQ(
      error_after([](json& m) { m["draft"]["tensors"]["x"] = m["draft"]["tensors"]["fuse"]; }),
      "draft.tensors.x: is a tensor that a draft of this kind does not have");
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["tensors"]["fuse"]["offset"] = m["draft"]["tensors"]["input"]["offset"];
              }).find("overlaps") != std::string::npos);
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["tensors"]["fuse"]["offset"] = 1 << 30;
              }).find("behind the end") != std::string::npos);
  EXPECT_EQ(
      error_after([](json& m) { m["draft"]["tensors"]["vocabulary_ids"]["format"] = "float32"; }),
      "draft.tensors.vocabulary_ids.format: expected int32, found \"float32\"");
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["tensors"]["uncertainty.w1"]["shape"] = {512};
              }).starts_with("draft.tensors.uncertainty.w1.shape: "));
  EXPECT_TRUE(error_after([](json& m) {
                m["draft"]["weights"] = "../draft.weights";
              }).starts_with("draft.weights: "));
  EXPECT_TRUE(error_after([](json& m) {
                m["target"]["tokenizer_sha256"] = "12";
              }).starts_with("target.tokenizer_sha256: "));
}

TEST(DraftFolder, FilesThatAreMissingShortOrChangedAreRefused) {
  const std::string target = bundle_folder();
  const auto changed = [&](const std::function<void(std::string&)>& change) {
    const std::string folder = write_test_draft(target, {}).value();
    std::string bytes = read_file(folder + "/draft.weights", 1 << 26).value();
    change(bytes);
    write_text(folder + "/draft.weights", bytes);
    return open_error(folder);
  };
  EXPECT_NE(changed([](std::string& b) { b.pop_back(); }).find("export the draft again"),
            std::string::npos);
  EXPECT_NE(changed([](std::string& b) { b[100] ^= 1; }).find("checksum"), std::string::npos);
  EXPECT_NE(open_error(temporary_folder()).find("is not a draft"), std::string::npos);
  EXPECT_NE(open_error(target).find("no draft's manifest"), std::string::npos);
}

// Overwrites a number of a tensor, with its checksum made right.
std::string after_poke(const std::string& tensor, size_t index, const void* value) {
  const std::string folder = write_test_draft(bundle_folder(), {}).value();
  json manifest = manifest_of(folder);
  std::string bytes = read_file(folder + "/draft.weights", 1 << 26).value();
  const size_t offset = manifest["draft"]["tensors"][tensor]["offset"];
  bytes.replace(offset + 4 * index, 4, static_cast<const char*>(value), 4);
  manifest["files"] = {file_entry("draft.weights", bytes)};
  write_text(folder + "/draft.weights", bytes);
  write_text(folder + "/manifest.json", manifest.dump());
  return open_error(folder);
}

TEST(DraftFolder, TokenIdsThatDoNotAscendInTheVocabularyAndValuesThatAreNotFiniteAreRefused) {
  for (const int32_t id : {-1, 160, 0}) {
    EXPECT_NE(after_poke("vocabulary_ids", 89, &id).find("do not ascend"), std::string::npos) << id;
  }
  const float nan = std::nanf("");
  EXPECT_NE(after_poke("uncertainty.w1", 3, &nan).find("not a finite number"), std::string::npos);
  EXPECT_NE(after_poke("output_norm", 0, &nan).find("not a finite number"), std::string::npos);
}

TEST(DraftFolder, ATargetThatItWasNotTrainedForIsRefusedByNameAndReason) {
  const std::string draft = write_test_draft(bundle_folder(), {}).value();
  const DraftFolder opened = std::move(DraftFolder::open(draft)).value();
  const auto refusal = [&](const TestBundleOptions& options) {
    const auto bundle = open_bundle(write_test_bundle(options).value());
    const Status status = check_fits(opened, *bundle);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(draft), std::string::npos);
    return status.message();
  };
  TestBundleOptions options = test_bundle_options("qwen2");
  EXPECT_NE(refusal(options).find("the family llama, this target has qwen2"), std::string::npos);
  options = test_bundle_options("llama");
  options.spec.layers = 5;
  options.spec.layer_is_sliding.resize(5);
  EXPECT_NE(refusal(options).find("so many layers: 4, this target has 5"), std::string::npos);
  options = test_bundle_options("llama");
  options.spec.vocabulary_size = 192;
  EXPECT_NE(refusal(options).find("a vocabulary of 160"), std::string::npos);
}

}  // namespace
}  // namespace sapwood
