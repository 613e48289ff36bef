// Asks the target what it says after every single token, in one and the same short context: a table
// of successors to begin with that needs no text (draft/ngram_table.h).
//
//   auto survey = TargetSurvey::create(model, context);
//   while (survey.value()->asked() < survey.value()->tokens()) {
//     SAPWOOD_TRY(survey.value()->ask(64));
//   }
//   NgramTable table = survey.value()->table(tokenizer_sha256);
//
// What a token is followed by hangs on more than the token, so such guesses are worth far less than
// those from the text at hand; but without any, a step is a token, and a few rows more cost little.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "draft/ngram_table.h"
#include "memory/kv_store.h"
#include "model/model.h"
#include "tree/row_layout.h"

namespace sapwood {

class TargetSurvey {
 public:
  // context: what comes before each token, at least one. Of a vocabulary larger than a table, the
  // lowest ids are asked: tokenizers number what they merged first, which is what is frequent.
  static Result<std::unique_ptr<TargetSurvey>> create(std::shared_ptr<Model> model,
                                                      std::span<const int32_t> context);

  int tokens() const { return tokens_; }  // to be asked in all
  int asked() const { return static_cast<int>(records_.size()); }

  // Asks the next `count` tokens, as far as there are any, as many a pass as the model takes.
  Status ask(int count);

  // What was found out so far.
  NgramTable table(std::string tokenizer_sha256) const;

 private:
  TargetSurvey(std::shared_ptr<Model> model, std::unique_ptr<KvStore> kv, int32_t last, int rows);
  Status fill(std::span<const int32_t> context);
  Status pass(int rows);

  std::shared_ptr<Model> model_;
  std::unique_ptr<KvStore> kv_;
  int32_t last_;  // of the context; it is the root of every pass
  int rows_;      // the most of a pass, the root among them
  int tokens_;
  std::vector<int32_t> committed_;
  std::vector<int32_t> slots_;
  std::vector<float> logits_;
  RowLayout layout_;
  DraftTree tree_;
  TopSelector selector_;
  std::vector<NgramTable::Record> records_;
};

}  // namespace sapwood
