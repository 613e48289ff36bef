#include "make_test_draft.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/packed_rows.h"
#include "model/bundle.h"
#include "temporary_folder.h"
#include "test_weights.h"

namespace sapwood {

using nlohmann::json;

namespace {

void copy_head(const Bundle& target, const std::string& format, const TestWeights& weights,
               std::string* bytes) {
  const json& entry = weights.tensors().at("head");
  const json& ids = weights.tensors().at("vocabulary_ids");
  const LinearWeights head{nullptr, entry.at("shape")[0], entry.at("shape")[1],
                           parse_linear_format(format).value()};
  auto* data = reinterpret_cast<uint8_t*>(bytes->data());
  for (int entry_index = 0; entry_index < head.outputs; ++entry_index) {
    int32_t token;
    std::memcpy(&token, data + ids.at("offset").get<size_t>() + 4 * entry_index, 4);
    copy_packed_row(target.head(), token, head, data + entry.at("offset").get<size_t>(),
                    entry_index);
  }
}

}  // namespace

Result<std::string> write_test_draft(const std::string& target, const TestDraftOptions& options) {
  const Result<Bundle> bundle = Bundle::open(target);
  if (!bundle.ok()) return bundle.status();
  DraftManifest draft;
  draft.kind = options.kind;
  draft.feature_layers = options.feature_layers;
  draft.subset = options.subset;
  draft.uncertainty_units = options.uncertainty_units;
  draft.parallel = options.kind == DraftKind::kParallelHeads ? options.parallel : 0;
  draft.spec = bundle.value().spec();
  const ModelSpec& spec = draft.spec;

  TestWeights weights(options.layer_format, options.head_format, options.seed);
  weights.set_limit(spec.vocabulary_size);
  for (const TensorShape& tensor : tensors_of_draft(draft)) weights.add(tensor);
  std::string bytes = weights.bytes();
  if (options.head_of_target) copy_head(bundle.value(), options.head_format, weights, &bytes);
  const FileEntry* tokenizer = bundle.value().manifest().file(bundle.value().tokenizer().file);
  const json manifest = {
      {"schema_version", kBundleSchema},
      {"kind", "draft"},
      {"name", "test-draft"},
      {"sapwood_version", "0.1.0"},
      {"target",
       {{"name", bundle.value().manifest().name},
        {"family", spec.family},
        {"hidden_size", spec.hidden_size},
        {"layers", spec.layers},
        {"vocabulary_size", spec.vocabulary_size},
        {"tokenizer_sha256", hexadecimal(tokenizer->sha256)}}},
      {"draft",
       {{"kind", draft_kind_name(options.kind)},
        {"feature_layers", options.feature_layers},
        {"subset", options.subset},
        {"spec",
         {{"intermediate_size", spec.intermediate_size},
          {"heads", spec.heads},
          {"kv_heads", spec.kv_heads},
          {"head_dim", spec.head_dim},
          {"norm_epsilon", spec.norm_epsilon},
          {"attention_scale", spec.attention_scale},
          {"activation", spec.activation == Activation::kSilu ? "silu" : "gelu_tanh"},
          {"qkv_bias", spec.qkv_bias},
          {"qk_norm", spec.qk_norm},
          {"post_norms", spec.post_norms}}},
        {"uncertainty_units", options.uncertainty_units},
        {"parallel", draft.parallel},
        {"weights", "draft.weights"},
        {"tensors", weights.tensors()}}},
      {"files", {file_entry("draft.weights", bytes)}}};
  const std::string folder = temporary_folder();
  write_text(folder + "/draft.weights", bytes);
  write_text(folder + "/manifest.json", manifest.dump(1) + "\n");
  return folder;
}

}  // namespace sapwood
