#include "write_onnx_graph.h"

#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "base/file_map.h"
#include "base/protobuf_message.h"
#include "base/sha256.h"
#include "model/tensors.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

using nlohmann::json;

// Field numbers below are those of onnx.proto.
enum ElementType { kFloat = 1, kUint8 = 2, kInt32 = 6, kFloat16 = 10 };

using Size = std::variant<int, const char*>;  // a known one, or a symbol
using Value = std::variant<int, float, std::string>;
using Attributes = std::vector<std::pair<std::string, Value>>;
using Names = std::vector<std::string>;

class Graph {
 public:
  Graph(const ModelSpec& spec, const json& tensors) : spec_(spec), tensors_(tensors) {}

  std::string model() {
    for (const char* name : {"token_ids", "positions", "slots"}) input(name, kInt32, {"rows"});
    input("context_slots", kInt32, {"context"});
    input("path_slots", kInt32, {"paths"});
    input("path_ranges", kInt32, {"rows", 2});
    input("output_rows", kInt32, {"outputs"});
    for (const auto& [name, entry] : tensors_.items()) initializer(name, entry);

    node("TokenEmbedding", {"token_ids", "embedding"}, {"hidden.0"},
         {{"format", format("embedding")},
          {"hidden", spec_.hidden_size},
          {"vocabulary", spec_.vocabulary_size},
          {"scale", spec_.embedding_scale}});
    for (const char* rope : {"rope.global", "rope.local"}) {
      if (tensors_.contains(rope)) {
        node("RotaryTable", {"positions", rope}, {std::string("rotary.") + rope}, {});
      }
    }
    for (int layer = 0; layer < spec_.layers; ++layer) add_layer(layer);
    const std::string head = spec_.tied_head ? "embedding" : "head";
    node("OutputHead",
         {"hidden." + std::to_string(spec_.layers), "output_rows", "final_norm", head}, {"logits"},
         {{"format", format(head)},
          {"norm_epsilon", spec_.norm_epsilon},
          {"vocabulary", spec_.vocabulary_size}});
    output("logits", kFloat, {"outputs", spec_.vocabulary_size});

    graph_.text(2, "test");
    ProtobufMessage standard, ours, model;
    standard.text(1, "").number(2, 20);
    ours.text(1, "com.endpoint.ai").number(2, 1);
    model.number(1, 10).message(7, graph_).message(8, standard).message(8, ours);
    return model.bytes();
  }

 private:
  std::string format(const std::string& tensor) const {
    return tensors_.at(tensor).at("format").get<std::string>();
  }

  void add_layer(int layer) {
    const std::string index = "." + std::to_string(layer);
    const auto weight = [&](const char* part) { return layer_tensor(layer, part); };
    const bool local = spec_.layer_is_sliding[layer] && tensors_.contains("rope.local");
    Names inputs = {"hidden" + index,
                    local ? "rotary.rope.local" : "rotary.rope.global",
                    "slots",
                    "context_slots",
                    "path_slots",
                    "path_ranges",
                    "past_keys" + index,
                    "past_values" + index,
                    weight("attention_norm"),
                    weight("mlp_norm"),
                    weight("qkv"),
                    weight("output"),
                    weight("gate_up"),
                    weight("down")};
    for (const char* part :
         {"qkv_bias", "q_norm", "k_norm", "attention_post_norm", "mlp_post_norm"}) {
      inputs.push_back(tensors_.contains(weight(part)) ? weight(part) : "");
    }
    const LayerShape shape = spec_.layer_shape(layer);
    node("DecoderLayer", inputs,
         {"hidden." + std::to_string(layer + 1), "present_keys" + index, "present_values" + index},
         {{"heads", spec_.heads},
          {"kv_heads", spec_.kv_heads},
          {"head_dim", spec_.head_dim},
          {"intermediate", spec_.intermediate_size},
          {"norm_epsilon", spec_.norm_epsilon},
          {"attention_scale", spec_.attention_scale},
          {"window", shape.attention.window},
          {"activation", spec_.activation == Activation::kSilu ? "silu" : "gelu_tanh"},
          {"qkv_format", format(weight("qkv"))},
          {"output_format", format(weight("output"))},
          {"gate_up_format", format(weight("gate_up"))},
          {"down_format", format(weight("down"))}});
    const std::vector<Size> keys = {spec_.kv_heads, "tiles", spec_.head_dim, kKeyTile};
    const std::vector<Size> values = {spec_.kv_heads, "slots", spec_.head_dim};
    input("past_keys" + index, kFloat16, keys);
    input("past_values" + index, kFloat16, values);
    output("present_keys" + index, kFloat16, keys);
    output("present_values" + index, kFloat16, values);
  }

  void node(const std::string& type, const Names& inputs, const Names& outputs,
            const Attributes& attributes) {
    ProtobufMessage message;
    for (const std::string& name : inputs) message.text(1, name);
    for (const std::string& name : outputs) message.text(2, name);
    message.text(3, outputs[0]).text(4, type).text(7, "com.endpoint.ai");
    for (const auto& [name, value] : attributes) {
      ProtobufMessage attribute;
      attribute.text(1, name);
      if (const int* whole = std::get_if<int>(&value)) {
        attribute.number(3, *whole).number(20, 2);
      } else if (const float* real = std::get_if<float>(&value)) {
        attribute.real32(2, *real).number(20, 1);
      } else {
        attribute.text(4, std::get<std::string>(value)).number(20, 3);
      }
      message.message(5, attribute);
    }
    graph_.message(1, message);
  }

  void initializer(const std::string& name, const json& entry) {
    const bool packed = entry.at("format") != "float32";
    const int64_t bytes = entry.at("bytes");
    ProtobufMessage tensor;
    tensor.number(1, packed ? bytes : bytes / static_cast<int64_t>(sizeof(float)))
        .number(2, packed ? kUint8 : kFloat);
    tensor.text(8, name);
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>{"location", "target.weights"},
          {"offset", std::to_string(entry.at("offset").get<uint64_t>())},
          {"length", std::to_string(bytes)}}) {
      ProtobufMessage property;
      property.text(1, key).text(2, value);
      tensor.message(13, property);
    }
    tensor.number(14, 1);  // external
    graph_.message(5, tensor);
  }

  void input(const std::string& name, ElementType type, const std::vector<Size>& sizes) {
    graph_.message(11, value_info(name, type, sizes));
  }
  void output(const std::string& name, ElementType type, const std::vector<Size>& sizes) {
    graph_.message(12, value_info(name, type, sizes));
  }
  static ProtobufMessage value_info(const std::string& name, ElementType type,
                                    const std::vector<Size>& sizes) {
    ProtobufMessage shape, tensor, holder, info;
    for (const Size& size : sizes) {
      ProtobufMessage dim;
      if (const int* known = std::get_if<int>(&size)) dim.number(1, *known);
      if (const auto* symbol = std::get_if<const char*>(&size)) dim.text(2, *symbol);
      shape.message(1, dim);
    }
    tensor.number(1, type).message(2, shape);
    holder.message(1, tensor);
    return info.text(1, name).message(2, holder);
  }

  const ModelSpec& spec_;
  const json& tensors_;
  ProtobufMessage graph_;
};

Result<json> read_manifest(const std::string& folder) {
  Result<std::string> text = read_file(folder + "/manifest.json", 1 << 24);
  if (!text.ok()) return text.status();
  return json::parse(text.value());
}

}  // namespace

Status write_onnx_file(const std::string& folder, const std::string& contents) {
  Result<json> manifest = read_manifest(folder);
  if (!manifest.ok()) return manifest.status();
  const Sha256Digest digest =
      sha256({reinterpret_cast<const uint8_t*>(contents.data()), contents.size()});
  json& files = manifest.value()["files"];
  manifest.value()["target"]["onnx"] = "target.onnx";
  files.push_back(
      {{"name", "target.onnx"}, {"bytes", contents.size()}, {"sha256", hexadecimal(digest)}});
  write_text(folder + "/target.onnx", contents);
  write_text(folder + "/manifest.json", manifest.value().dump(1) + "\n");
  return Status::okay();
}

Status write_onnx_graph(const std::string& folder, const ModelSpec& graph_spec) {
  const Result<json> manifest = read_manifest(folder);
  if (!manifest.ok()) return manifest.status();
  Graph graph(graph_spec, manifest.value().at("target").at("tensors"));
  return write_onnx_file(folder, graph.model());
}

}  // namespace sapwood
