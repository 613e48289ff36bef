#include "text/tokenizer_file.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace sapwood {
namespace {

using nlohmann::json;

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";  // U+2581

// The two large parts, taken out of the document while it is parsed: half a million merges as a
// tree of JSON values would need a hundred megabytes.
struct LargeParts {
  std::vector<std::pair<std::string, int64_t>> vocabulary;
  std::vector<std::string> merges;  // left, right, left, right, ...; or "left right"
  bool pairs = false;
};

class LargePartsReader {
 public:
  explicit LargePartsReader(LargeParts* parts) : parts_(parts) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      if (depth == 1) section_ = parsed.get_ref<const std::string&>();
      if (depth == 2) part_ = parsed.get_ref<const std::string&>();
      if (depth == 3) key_ = parsed.get_ref<const std::string&>();
      return true;
    }
    if (event != json::parse_event_t::value || section_ != "model" || depth < 3) return true;
    if (part_ == "vocab" && depth == 3) {
      parts_->vocabulary.emplace_back(std::move(key_),
                                      parsed.is_number_integer() ? parsed.get<int64_t>() : -1);
      return false;
    }
    if (part_ == "merges" && parsed.is_string()) {
      parts_->pairs = depth == 4;
      parts_->merges.push_back(std::move(parsed.get_ref<std::string&>()));
      return false;
    }
    return true;
  }

 private:
  LargeParts* parts_;
  std::string section_;
  std::string part_;
  std::string key_;
};

class Reader {
 public:
  Reader(const std::string& name, TokenizerFile* file) : name_(name), file_(*file) {}

  Status read(const json& root, LargeParts& parts) {
    if (!root.is_object()) return corrupt("it is not an object");
    const JsonObject document(root, name_);
    SAPWOOD_TRY(read_added(document));
    SAPWOOD_TRY(read_normalizer(field(root, "normalizer")));
    SAPWOOD_TRY(read_pre_tokenizer(field(root, "pre_tokenizer")));
    SAPWOOD_TRY(read_decoder(field(root, "decoder")));
    return read_model(document, parts);
  }

 private:
  Status corrupt(const std::string& what) const {
    return Status(Code::kCorrupt,
                  name_ + ": not a valid tokenizer.json: " + what + "; export the bundle again");
  }
  Status unsupported(const std::string& what) const {
    return Status(Code::kUnsupported, name_ + ": " + what +
                                          " is not supported by the tokenizer of the engine; "
                                          "known are those of Llama 3, SmolLM2, Qwen 2 and 3 and "
                                          "Gemma");
  }

  static const json& field(const json& object, const char* key) {
    static const json nothing;
    if (!object.is_object()) return nothing;
    const auto found = object.find(key);
    return found == object.end() ? nothing : *found;
  }
  static std::string text_of(const json& object, const char* key) {
    const json& found = field(object, key);
    return found.is_string() ? found.get<std::string>() : std::string();
  }
  static bool is_true(const json& object, const char* key) {
    const json& found = field(object, key);
    return found.is_boolean() && found.get<bool>();
  }

  Status read_added(const JsonObject& document) {
    std::vector<JsonObject> entries;
    if (document.has("added_tokens")) SAPWOOD_TRY(document.read("added_tokens", &entries));
    for (const JsonObject& entry : entries) {
      AddedToken token;
      SAPWOOD_TRY(entry.read("content", &token.content));
      SAPWOOD_TRY(entry.read("id", 0, Vocabulary::kMaxId, &token.id));
      SAPWOOD_TRY(entry.read("special", &token.special));
      SAPWOOD_TRY(entry.read("normalized", &token.normalized));
      for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
        bool set = false;
        if (entry.has(flag)) SAPWOOD_TRY(entry.read(flag, &set));
        if (set) {
          return unsupported("the added token " + printable(token.content) + " with " + flag);
        }
      }
      file_.added.push_back(std::move(token));
    }
    return Status::okay();
  }

  Status read_normalizer(const json& step) {
    const std::string type = text_of(step, "type");
    if (step.is_null()) return Status::okay();
    if (type == "Sequence" && field(step, "normalizers").is_array()) {
      for (const json& inner : field(step, "normalizers")) SAPWOOD_TRY(read_normalizer(inner));
      return Status::okay();
    }
    if (type == "NFC" && !file_.mark_spaces) {
      file_.nfc = true;
      return Status::okay();
    }
    if (type == "Replace" && text_of(field(step, "pattern"), "String") == " " &&
        text_of(step, "content") == kSpaceMark) {
      file_.mark_spaces = true;
      return Status::okay();
    }
    return unsupported("the normalizer " + shortened(step));
  }

  Status read_pre_tokenizer(const json& step) {
    const std::string type = text_of(step, "type");
    if (step.is_null()) return Status::okay();
    // Behind the mapping of bytes to characters there is nothing left to split.
    if (file_.bpe.bytes) return unsupported("the pre-tokenizer " + shortened(step));
    if (type == "Sequence" && field(step, "pretokenizers").is_array()) {
      for (const json& inner : field(step, "pretokenizers")) {
        SAPWOOD_TRY(read_pre_tokenizer(inner));
      }
      return Status::okay();
    }
    if (type == "Digits") {
      file_.splits.push_back(is_true(step, "individual_digits") ? SplitRule::kEachDigit
                                                                : SplitRule::kDigitRuns);
      return Status::okay();
    }
    if (type == "ByteLevel" && !is_true(step, "add_prefix_space")) {
      if (is_true(step, "use_regex")) file_.splits.push_back(SplitRule::kGpt2);
      file_.bpe.bytes = true;
      return Status::okay();
    }
    if (type == "Split" && !is_true(step, "invert")) {
      const std::string behavior = text_of(step, "behavior");
      SplitRule rule = SplitRule::kAfterSpaces;
      const bool isolates =
          behavior == "Isolated" && known_pattern(text_of(field(step, "pattern"), "Regex"), &rule);
      const bool after_spaces =
          behavior == "MergedWithPrevious" && text_of(field(step, "pattern"), "String") == " ";
      if (isolates || after_spaces) {
        file_.splits.push_back(rule);
        return Status::okay();
      }
    }
    return unsupported("the pre-tokenizer " + shortened(step));
  }

  // The two decoders that the detokenizer is made for.
  Status read_decoder(const json& step) const {
    if (file_.bpe.bytes ? text_of(step, "type") == "ByteLevel"
                        : text_of(step, "type") == "Sequence" && is_gemma_decoder(step)) {
      return Status::okay();
    }
    return unsupported("the decoder " + shortened(step));
  }

  static bool is_gemma_decoder(const json& step) {
    const json& steps = field(step, "decoders");
    if (!steps.is_array() || steps.size() != 3) return false;
    return text_of(steps[0], "type") == "Replace" &&
           text_of(field(steps[0], "pattern"), "String") == kSpaceMark &&
           text_of(steps[0], "content") == " " && text_of(steps[1], "type") == "ByteFallback" &&
           text_of(steps[2], "type") == "Fuse";
  }

  Status read_model(const JsonObject& document, LargeParts& parts) {
    JsonObject model;
    SAPWOOD_TRY(document.read("model", &model));
    std::string type;
    SAPWOOD_TRY(model.read("type", &type));
    if (type != "BPE") return unsupported("the model " + printable(type));
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      std::string value;
      if (model.has(affix)) SAPWOOD_TRY(model.read(affix, &value));
      if (!value.empty()) return unsupported(std::string("a ") + affix);
    }
    if (model.has("byte_fallback")) {
      SAPWOOD_TRY(model.read("byte_fallback", &file_.bpe.byte_fallback));
    }
    if (model.has("fuse_unk")) SAPWOOD_TRY(model.read("fuse_unk", &file_.bpe.fuse_unknown));
    if (model.has("ignore_merges")) {
      SAPWOOD_TRY(model.read("ignore_merges", &file_.bpe.ignore_merges));
    }
    for (auto& [text, id] : parts.vocabulary) {
      if (id < 0 || id > Vocabulary::kMaxId) {
        return corrupt("model.vocab: the token " + printable(text) + " has no valid id");
      }
      file_.vocabulary.set(static_cast<int32_t>(id), std::move(text));
    }
    if (file_.vocabulary.size() == 0) return corrupt("model.vocab: it has no tokens");
    file_.vocabulary.finish();
    if (model.has("unk_token")) {
      std::string unknown;
      SAPWOOD_TRY(model.read("unk_token", &unknown));
      file_.bpe.unknown = file_.vocabulary.find(unknown);
      if (file_.bpe.unknown == Vocabulary::kNone) {
        return corrupt("model.unk_token: " + printable(unknown) + " is not in model.vocab");
      }
    }
    return read_merges(parts);
  }

  Status read_merges(const LargeParts& parts) {
    const size_t step = parts.pairs ? 2 : 1;
    if (parts.merges.size() % step != 0) return corrupt("model.merges: a pair is not one");
    file_.merges.reserve(parts.merges.size() / step);
    std::string both;
    for (size_t i = 0; i < parts.merges.size(); i += step) {
      std::string_view left = parts.merges[i];
      std::string_view right = parts.merges[i + step - 1];
      if (!parts.pairs) {
        const size_t space = left.find(' ');
        if (space == std::string_view::npos) return corrupt("model.merges: a pair is not one");
        right = left.substr(space + 1);
        left = left.substr(0, space);
      }
      both.assign(left).append(right);
      const int32_t ids[3] = {file_.vocabulary.find(left), file_.vocabulary.find(right),
                              file_.vocabulary.find(both)};
      if (*std::min_element(ids, ids + 3) == Vocabulary::kNone) {
        return corrupt("model.merges: pair " + std::to_string(i / step) + " makes " +
                       printable(both) + " out of tokens that are not all in model.vocab");
      }
      file_.merges.add(ids[0], ids[1], {static_cast<int32_t>(i / step), ids[2]});
    }
    return Status::okay();
  }

  static std::string shortened(const json& step) {
    return printable(step.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  const std::string& name_;
  TokenizerFile& file_;
};

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view text, const std::string& name) {
  LargeParts parts;
  json root;
  try {
    root = json::parse(text, LargePartsReader(&parts));
  } catch (const json::exception& error) {
    return Status(Code::kCorrupt, name + ": not a valid tokenizer.json: " +
                                      printable(error.what()) + "; export the bundle again");
  }
  TokenizerFile file;
  SAPWOOD_TRY(Reader(name, &file).read(root, parts));
  return file;
}

}  // namespace sapwood
