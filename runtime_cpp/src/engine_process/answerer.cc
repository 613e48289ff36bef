#include "engine_process/answerer.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/file_map.h"
#include "base/json.h"
#include "model/draft_folder.h"

namespace sapwood {
namespace {

constexpr uint64_t kMaxTemplateBytes = uint64_t{1} << 20;

Status status_of(sapwood_code code) {
  if (code == SAPWOOD_OK) return Status::okay();
  return Status(static_cast<Code>(code), sapwood_last_error());
}

const char* text_or_null(const std::optional<std::string>& text) {
  return text ? text->c_str() : nullptr;
}

}  // namespace

Result<std::unique_ptr<Answerer>> Answerer::open(const AnswererOptions& options) {
  std::unique_ptr<Answerer> made(new Answerer());
  sapwood_engine_options engine_options;
  sapwood_engine_options_init(&engine_options, sizeof(engine_options));
  engine_options.host = options.host.c_str();
  engine_options.threads = options.threads;
  engine_options.verify_checksums = options.verify_checksums ? 1 : 0;
  sapwood_engine* engine = nullptr;
  SAPWOOD_TRY(status_of(sapwood_engine_open(options.bundle.c_str(), &engine_options, &engine)));
  made->engine_.reset(engine);
  SAPWOOD_TRY(made->open_text(*engine->bundle));

  made->drafter_ = options.drafter.value_or(options.draft ? "cascade" : "mix");
  sapwood_session_options session_options;
  sapwood_session_options_init(&session_options, sizeof(session_options));
  session_options.context_length = options.context_length;
  session_options.max_tree_nodes = options.max_tree_nodes;
  session_options.drafter = made->drafter_.c_str();
  session_options.draft_bundle = text_or_null(options.draft);
  session_options.ngram_table = text_or_null(options.ngram_table);
  session_options.measured_costs = text_or_null(options.measured_costs);
  session_options.kv = options.kv.c_str();
  sapwood_session* session = nullptr;
  SAPWOOD_TRY(status_of(sapwood_session_create(engine, &session_options, &session)));
  made->session_.reset(session);
  made->context_length_ = session->session->context_length();
  return made;
}

Answerer::~Answerer() = default;

Status Answerer::open_text(const Bundle& bundle) {
  const TokenizerInfo& info = bundle.tokenizer();
  const std::string path = bundle.file_path(info.file);
  Result<std::string> definition = read_file(path, kMaxTokenizerBytes);
  if (!definition.ok()) return definition.status();
  Result<Tokenizer> tokenizer = Tokenizer::parse(definition.value(), path);
  if (!tokenizer.ok()) return tokenizer.status();
  tokenizer_.emplace(std::move(tokenizer).value());
  ChatEncoder::Options options{info.bos_token_id, info.eos_token_ids, std::nullopt, path};
  if (!info.chat_template.empty()) {
    const std::string template_path = bundle.file_path(info.chat_template);
    const Result<std::string> source = read_file(template_path, kMaxTemplateBytes);
    if (!source.ok()) return source.status();
    Result<ChatTemplate> made = ChatTemplate::parse(source.value(), template_path);
    if (!made.ok()) return made.status();
    options.chat_template = std::move(made).value();
  }
  encoder_.emplace(&*tokenizer_, std::move(options));
  return Status::okay();
}

Status Answerer::too_long(const std::string& size) const {
  return Status(Code::kInvalidArgument,
                "the prompt has " + size + " tokens and the context holds " +
                    std::to_string(context_length_) + "; shorten it or load a longer context");
}

Result<std::vector<int32_t>> Answerer::encode(const AnswerRequest& request) const {
  const size_t least = encoder_->least_ids(request.text_bytes);
  if (least > static_cast<size_t>(context_length_)) {
    return too_long("at least " + std::to_string(least));
  }
  if (request.messages) return encoder_->encode_chat(*request.messages, request.variables);
  return encoder_->encode_prompt(request.prompt);
}

Status Answerer::answer(const AnswerRequest& request, const Events& events) {
  const Clock::time_point begin = Clock::now();
  emitted_.clear();
  step_begin_ = 0;
  stopped_ = false;
  first_token_seconds_ = 0;
  const Result<std::vector<int32_t>> encoded = encode(request);
  if (!encoded.ok()) return encoded.status();
  const std::vector<int32_t>& prompt = encoded.value();
  if (prompt.size() > static_cast<size_t>(context_length_)) {
    return too_long(std::to_string(prompt.size()));
  }
  if (!events.reading(static_cast<int>(prompt.size()))) {
    return Status(Code::kCancelled, "stopped before the prompt was read");
  }
  SAPWOOD_TRY(status_of(
      sapwood_session_start(session_.get(), prompt.data(), prompt.size(), &request.options)));
  Detokenizer detokenizer(*tokenizer_);
  StopMatcher matcher(request.stops);
  for (;;) {
    const int32_t* tokens = nullptr;
    size_t count = 0;
    SAPWOOD_TRY(status_of(sapwood_session_step(session_.get(), &tokens, &count)));
    if (count == 0) break;
    if (emitted_.empty()) first_token_seconds_ = seconds_since(begin);
    step_begin_ = emitted_.size();
    std::string text;
    for (size_t i = 0; i < count && !matcher.matched(); ++i) {
      emitted_.push_back(tokens[i]);
      text += matcher.push(detokenizer.push(tokens[i]));
    }
    stopped_ = matcher.matched();
    if (stopped_) {
      SAPWOOD_TRY(status_of(
          sapwood_session_finish_at(session_.get(), static_cast<int32_t>(emitted_.size()))));
    }
    if (!events.step(text)) {
      if (!stopped_) {
        SAPWOOD_TRY(status_of(
            sapwood_session_finish_at(session_.get(), static_cast<int32_t>(emitted_.size()))));
      }
      return Status::okay();
    }
    if (stopped_) return Status::okay();
  }
  // What a stop might still have claimed is free, and half a character becomes U+FFFD.
  std::string rest = matcher.push(detokenizer.finish());
  rest += matcher.finish();
  if (!rest.empty()) events.step(rest);
  return Status::okay();
}

Status Answerer::observe(const sapwood_readings& readings) {
  return status_of(sapwood_session_observe(session_.get(), &readings));
}

Status Answerer::start_trace(int32_t events) {
  return status_of(sapwood_session_trace(session_.get(), events));
}

Status Answerer::save_trace(const std::string& file, size_t* events, uint64_t* lost) {
  return status_of(sapwood_session_save_trace(session_.get(), file.c_str(), events, lost));
}

sapwood_stats Answerer::stats() const {
  sapwood_stats stats;
  sapwood_stats_init(&stats, sizeof(stats));
  sapwood_session_stats(session_.get(), &stats);
  return stats;
}

std::string Answerer::stop_reason() const {
  if (stopped_) return "stop";
  return sapwood_stop_reason_name(sapwood_session_stop_reason(session_.get()));
}

std::vector<TreeNode> Answerer::tree(std::string* emitted) {
  const DraftTree& tree = session_->session->last_tree();
  std::vector<TreeNode> nodes(static_cast<size_t>(tree.size()));
  for (int v = 0; v < tree.size(); ++v) {
    nodes[static_cast<size_t>(v)] = {token_as_text(*tokenizer_, tree.token(v)), tree.parent(v),
                                     tree.depth(v), static_cast<double>(tree.path_acceptance(v)),
                                     false};
  }
  int node = DraftTree::kRoot;
  emitted->clear();
  for (size_t i = step_begin_; i < emitted_.size(); ++i) {
    *emitted += token_as_text(*tokenizer_, emitted_[i]);
    if (node != DraftTree::kNone) node = tree.find_child(node, emitted_[i]);
    if (node >= 0) nodes[static_cast<size_t>(node)].accepted = true;
  }
  return nodes;
}

}  // namespace sapwood
