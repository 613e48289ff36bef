#include "make_test_bundle.h"

#include <nlohmann/json.hpp>

#include "model/manifest.h"
#include "model/tensors.h"
#include "temporary_folder.h"
#include "test_weights.h"

namespace sapwood {
namespace {

using nlohmann::json;

json spec_json(const ModelSpec& spec) {
  return {{"family", spec.family},
          {"vocabulary_size", spec.vocabulary_size},
          {"hidden_size", spec.hidden_size},
          {"intermediate_size", spec.intermediate_size},
          {"layers", spec.layers},
          {"heads", spec.heads},
          {"kv_heads", spec.kv_heads},
          {"head_dim", spec.head_dim},
          {"context_length", spec.context_length},
          {"norm_epsilon", spec.norm_epsilon},
          {"attention_scale", spec.attention_scale},
          {"embedding_scale", spec.embedding_scale},
          {"activation", spec.activation == Activation::kSilu ? "silu" : "gelu_tanh"},
          {"qkv_bias", spec.qkv_bias},
          {"qk_norm", spec.qk_norm},
          {"post_norms", spec.post_norms},
          {"tied_head", spec.tied_head},
          {"sliding_window", spec.sliding_window},
          {"layer_is_sliding", spec.layer_is_sliding}};
}

// One word a token: "t0 t17 t4".
std::string tokenizer_json(int vocabulary) {
  json words = json::object();
  for (int token = 0; token < vocabulary; ++token) words["t" + std::to_string(token)] = token;
  const json tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
      {"post_processor", nullptr},
      {"decoder", nullptr},
      {"model", {{"type", "WordLevel"}, {"vocab", words}, {"unk_token", "t0"}}}};
  return tokenizer.dump();
}

Status check_format(const std::string& format, int inputs) {
  const std::optional<LinearFormat> known = parse_linear_format(format);
  if (known.has_value() && inputs % known->group == 0) return Status::okay();
  return Status(Code::kInvalidArgument,
                format + ": no format for " + std::to_string(inputs) + " inputs");
}

}  // namespace

TestBundleOptions test_bundle_options(std::string_view family) {
  TestBundleOptions options;
  ModelSpec& spec = options.spec;
  const bool gemma = family == "gemma3";
  spec.family = family;
  spec.vocabulary_size = 160;
  spec.hidden_size = 64;
  spec.intermediate_size = 96;
  spec.layers = gemma ? 6 : 4;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.context_length = 256;
  spec.attention_scale = 0.25f;
  spec.qkv_bias = family == "qwen2";
  spec.qk_norm = gemma || family == "qwen3";
  spec.post_norms = gemma;
  spec.tied_head = family != "llama";
  spec.layer_is_sliding.assign(static_cast<size_t>(spec.layers), gemma);
  if (gemma) {
    spec.activation = Activation::kGeluTanh;
    spec.embedding_scale = 8.f;
    spec.sliding_window = 8;
    spec.layer_is_sliding.back() = false;
  }
  return options;
}

Result<std::string> write_test_bundle(const TestBundleOptions& options) {
  const ModelSpec& spec = options.spec;
  SAPWOOD_TRY(check_spec(spec));
  for (const int inputs : {spec.hidden_size, spec.intermediate_size, spec.heads * spec.head_dim}) {
    SAPWOOD_TRY(check_format(options.layer_format, inputs));
  }
  SAPWOOD_TRY(check_format(options.embedding_format, spec.hidden_size));

  TestWeights weights(options.layer_format, options.embedding_format, options.seed);
  if (spec.sliding_window != 0) weights.set_rope_base("rope.global", 1e6);
  for (const TensorShape& tensor : tensors_of(spec)) weights.add(tensor);
  const std::string tokenizer = tokenizer_json(spec.vocabulary_size);
  const json manifest = {
      {"schema_version", kBundleSchema},
      {"sapwood_version", "0.1.0"},
      {"name", "test-" + spec.family},
      {"source", {{"kind", "gguf"}, {"file", "test.gguf"}}},
      {"target",
       {{"spec", spec_json(spec)},
        {"weights", "target.weights"},
        {"tensors", weights.tensors()},
        {"onnx", nullptr}}},
      {"tokenizer",
       {{"file", "tokenizer.json"},
        {"chat_template", nullptr},
        {"bos_token_id", 1},
        {"eos_token_ids", {2}}}},
      {"quantization",
       {{"method", "round-to-nearest"},
        {"by_format", json::object()},
        {"source_formats", json::object()}}},
      {"operators", {{"domain", "com.endpoint.ai"}, {"version", kOperatorVersion}}},
      {"numerics",
       {{"row_invariant", true},
        {"activation_bits", 8},
        {"activation_group", kActivationGroup},
        {"kv", "float16"}}},
      {"drafters", json::array()},
      {"defaults", {{"mode", "dynamic"}, {"context_length", spec.context_length}}},
      {"files",
       {file_entry("target.weights", weights.bytes()), file_entry("tokenizer.json", tokenizer)}}};

  const std::string folder = options.folder.empty() ? temporary_folder() : options.folder;
  write_text(folder + "/target.weights", weights.bytes());
  write_text(folder + "/tokenizer.json", tokenizer);
  write_text(folder + "/manifest.json", manifest.dump(1) + "\n");
  return folder;
}

}  // namespace sapwood
