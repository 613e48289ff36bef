#include "model/draft_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/file_map.h"
#include "base/json.h"

namespace sapwood {
namespace {

constexpr uint64_t kMaxTokenizerBytes = uint64_t{256} << 20;

using Vocabulary = std::map<int64_t, std::string>;  // id -> token

Status refuse(const Bundle& draft, const std::string& what) {
  return Status(Code::kInvalidArgument,
                "the draft bundle " + draft.folder() + ": " + what +
                    "; a draft needs the target's vocabulary, so name a smaller model of the same "
                    "family");
}

// "vocab" is {token: id} (BPE, WordPiece, WordLevel) or [[token, score], ...] (Unigram); added
// tokens are {"id": id, "content": token}.
Result<Vocabulary> read_vocabulary(const Bundle& bundle) {
  const std::string file = bundle.file_path(bundle.tokenizer().file);
  const Result<std::string> text = read_file(file, kMaxTokenizerBytes);
  if (!text.ok()) return text.status();
  const Result<nlohmann::json> parsed = parse_json(text.value(), file);
  if (!parsed.ok()) return parsed.status();
  const nlohmann::json& root = parsed.value();
  Vocabulary vocabulary;
  const auto model = root.find("model");
  if (root.is_object() && model != root.end() && model->is_object() && model->contains("vocab")) {
    const nlohmann::json& tokens = (*model)["vocab"];
    int64_t place = 0;
    for (const auto& item : tokens.items()) {
      if (tokens.is_object() && item.value().is_number_integer()) {
        vocabulary[item.value().get<int64_t>()] = item.key();
      } else if (tokens.is_array() && item.value().is_array() && !item.value().empty() &&
                 item.value()[0].is_string()) {
        vocabulary[place++] = item.value()[0].get<std::string>();
      }
    }
  }
  const auto added = root.find("added_tokens");
  if (root.is_object() && added != root.end() && added->is_array()) {
    for (const nlohmann::json& token : *added) {
      if (!token.is_object() || !token.contains("id") || !token["id"].is_number_integer()) continue;
      if (!token.contains("content") || !token["content"].is_string()) continue;
      vocabulary[token["id"].get<int64_t>()] = token["content"].get<std::string>();
    }
  }
  if (vocabulary.empty()) {
    return Status(Code::kCorrupt, file + ": names no tokens; export the bundle again");
  }
  return vocabulary;
}

// Null where the id has no token: vocabularies are padded to round sizes.
const std::string* token_at(const Vocabulary& vocabulary, int64_t id) {
  const auto found = vocabulary.find(id);
  return found == vocabulary.end() ? nullptr : &found->second;
}

std::string in_words(const std::string* token) {
  return token == nullptr ? "nothing" : printable(*token);
}

}  // namespace

Status check_same_vocabulary(const Bundle& target, const Bundle& draft) {
  if (target.spec().vocabulary_size != draft.spec().vocabulary_size) {
    return refuse(draft, "has " + std::to_string(draft.spec().vocabulary_size) +
                             " tokens and the target has " +
                             std::to_string(target.spec().vocabulary_size));
  }
  const FileEntry* ours = target.manifest().file(target.tokenizer().file);
  const FileEntry* theirs = draft.manifest().file(draft.tokenizer().file);
  if (ours != nullptr && theirs != nullptr && ours->sha256 == theirs->sha256) {
    return Status::okay();
  }
  const Result<Vocabulary> wanted = read_vocabulary(target);
  if (!wanted.ok()) return wanted.status();
  const Result<Vocabulary> found = read_vocabulary(draft);
  if (!found.ok()) return found.status();
  for (int64_t id = 0; id < target.spec().vocabulary_size; ++id) {
    const std::string* here = token_at(wanted.value(), id);
    const std::string* there = token_at(found.value(), id);
    if (here == nullptr ? there == nullptr : there != nullptr && *here == *there) continue;
    return refuse(draft, "its token " + std::to_string(id) + " is " + in_words(there) +
                             " and the target's is " + in_words(here));
  }
  return Status::okay();
}

Result<std::unique_ptr<Model>> open_draft_model(const Bundle& target,
                                                std::shared_ptr<const Bundle> draft,
                                                const NativeOptions& options) {
  SAPWOOD_TRY(check_same_vocabulary(target, *draft));
  return open_native_model(std::move(draft), options);
}

Result<std::unique_ptr<Model>> open_early_exit(std::shared_ptr<const Bundle> target,
                                               NativeOptions options) {
  options.layers = target->manifest().early_exit_layers();
  if (options.layers == 0) {
    return Status(Code::kNotFound,
                  target->folder() +
                      ": has no early exit; export it again with --early-exit LAYERS, or choose "
                      "another drafter");
  }
  return open_native_model(std::move(target), options);
}

}  // namespace sapwood
