// A bundle that is open, and answers made with it: text in, text out. What the engine process
// computes, without its protocol.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/c_api.h"
#include "sapwood/sapwood.h"
#include "template/chat_encoder.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace sapwood {

struct AnswererOptions {
  std::string bundle;
  std::string host = "native";
  int threads = 0;
  bool verify_checksums = true;
  int context_length = 0;
  int max_tree_nodes = 31;
  std::optional<std::string> drafter;
  std::optional<std::string> draft;
  std::optional<std::string> ngram_table;
  std::optional<std::string> measured_costs;
  std::string kv = "float16";
};

struct AnswerRequest {
  std::optional<chat::Value> messages;  // or
  std::string prompt;
  chat::Dictionary variables;  // of the template
  size_t text_bytes = 0;       // of messages or prompt, at least
  std::vector<std::string> stops;
  sapwood_generate_options options;
};

struct TreeNode {
  std::string text;
  int parent = -1;
  int depth = 1;
  double path_acceptance = 0;
  bool accepted = false;
};

// Not thread-safe, except for cancel().
class Answerer {
 public:
  static Result<std::unique_ptr<Answerer>> open(const AnswererOptions& options);
  ~Answerer();
  Answerer(const Answerer&) = delete;
  Answerer& operator=(const Answerer&) = delete;

  // What happens while an answer is made. Each returns whether to go on.
  struct Events {
    std::function<bool(int prompt_tokens)> reading;
    std::function<bool(const std::string& text)> step;  // text: what is certain since the last
  };
  // Makes an answer; stats() and stop_reason() are its own afterwards.
  Status answer(const AnswerRequest& request, const Events& events);

  void cancel() { sapwood_session_cancel(session_.get()); }  // from any thread

  // Also between two steps of an answer, that is from Events::step.
  Status observe(const sapwood_readings& readings);
  Status start_trace(int32_t events);  // the latest so many are kept; 0: stops
  Status save_trace(const std::string& file, size_t* events, uint64_t* lost);

  sapwood_stats stats() const;
  double first_token_seconds() const { return first_token_seconds_; }
  std::string stop_reason() const;  // "eos", "length", "context", "stop", "cancelled", "none"
  std::vector<int32_t> emitted_ids() const { return emitted_; }

  // The latest step's draft tree, and the text of the tokens that the step emitted.
  std::vector<TreeNode> tree(std::string* emitted);

  const std::string& model_name() const { return engine_->bundle->manifest().name; }
  const std::string& drafter() const { return drafter_; }
  int threads() const { return engine_->threads; }
  const std::string& host() const { return engine_->host; }
  int vocabulary_size() const { return sapwood_engine_vocabulary_size(engine_.get()); }
  int context_length() const { return context_length_; }
  bool has_template() const { return encoder_->has_template(); }

 private:
  struct CloseEngine {
    void operator()(sapwood_engine* engine) const { sapwood_engine_close(engine); }
  };
  struct CloseSession {
    void operator()(sapwood_session* session) const { sapwood_session_close(session); }
  };

  Answerer() = default;

  Status open_text(const Bundle& bundle);
  Result<std::vector<int32_t>> encode(const AnswerRequest& request) const;
  Status too_long(const std::string& size) const;

  std::unique_ptr<sapwood_engine, CloseEngine> engine_;
  std::unique_ptr<sapwood_session, CloseSession> session_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatEncoder> encoder_;
  std::string drafter_;
  int context_length_ = 0;
  std::vector<int32_t> emitted_;  // of the latest answer
  size_t step_begin_ = 0;         // where the latest step's tokens begin in it
  bool stopped_ = false;          // a stop text was found
  double first_token_seconds_ = 0;
};

}  // namespace sapwood
