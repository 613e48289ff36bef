#include "draft/target_survey.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sapwood {
namespace {

constexpr int kMostRows = 64;  // of a pass: more is no faster, and wants room for their logits

}  // namespace

Result<std::unique_ptr<TargetSurvey>> TargetSurvey::create(std::shared_ptr<Model> model,
                                                           std::span<const int32_t> context) {
  const int rows = std::min(model->max_rows(), kMostRows);
  if (context.empty() || rows < 2) {
    return Status(Code::kInvalidArgument,
                  "a survey needs a context of one token, and a model that takes two rows");
  }
  const ModelSpec& spec = model->spec();
  Result<std::unique_ptr<KvStore>> kv = KvStore::create(spec.layers, spec.kv_heads, spec.head_dim,
                                                        static_cast<int>(context.size()) + rows);
  if (!kv.ok()) return kv.status();
  std::unique_ptr<TargetSurvey> survey(
      new TargetSurvey(std::move(model), std::move(kv).value(), context.back(), rows));
  SAPWOOD_TRY(survey->fill(context.first(context.size() - 1)));
  return survey;
}

TargetSurvey::TargetSurvey(std::shared_ptr<Model> model, std::unique_ptr<KvStore> kv, int32_t last,
                           int rows)
    : model_(std::move(model)),
      kv_(std::move(kv)),
      last_(last),
      rows_(rows),
      tokens_(std::min(model_->spec().vocabulary_size, NgramTable::kMostRecords)),
      slots_(static_cast<size_t>(rows)),
      logits_(static_cast<size_t>(rows) * static_cast<size_t>(model_->spec().vocabulary_size)),
      layout_(rows) {
  records_.reserve(static_cast<size_t>(tokens_));
  selector_.reserve(model_->spec().vocabulary_size);
}

Status TargetSurvey::fill(std::span<const int32_t> context) {
  while (committed_.size() < context.size()) {
    const size_t done = committed_.size();
    const size_t rows = std::min(context.size() - done, static_cast<size_t>(rows_));
    const std::span<int32_t> slots(slots_.data(), rows);
    std::iota(slots.begin(), slots.end(), static_cast<int32_t>(done));
    SAPWOOD_TRY(model_->forward(layout_.text_rows(context.subspan(done, rows), committed_, slots),
                                *kv_, {}));
    committed_.insert(committed_.end(), slots.begin(), slots.end());
  }
  std::iota(slots_.begin(), slots_.end(), static_cast<int32_t>(committed_.size()));
  return Status::okay();
}

Status TargetSurvey::ask(int count) {
  while (count > 0 && asked() < tokens_) {
    const int rows = std::min({count, rows_ - 1, tokens_ - asked()});
    SAPWOOD_TRY(pass(rows));
    count -= rows;
  }
  return Status::okay();
}

Status TargetSurvey::pass(int rows) {
  const size_t vocabulary = static_cast<size_t>(model_->spec().vocabulary_size);
  tree_.clear();
  for (int i = 0; i < rows; ++i) tree_.add(DraftTree::kRoot, asked() + i, 0.f, 0.f, 0.f);
  const size_t all = static_cast<size_t>(rows) + 1;
  const std::span<float> logits(logits_.data(), all * vocabulary);
  SAPWOOD_TRY(model_->forward(layout_.tree_rows(last_, tree_, committed_, {slots_.data(), all}),
                              *kv_, logits));
  for (size_t i = 1; i < all; ++i) {
    NgramTable::Record& record = records_.emplace_back();
    record.before = SuccessorTable::kNoToken;
    record.token = tree_.token(static_cast<int>(i) - 1);
    selector_.select(logits.subspan(i * vocabulary, vocabulary), record.top);
  }
  return Status::okay();
}

NgramTable TargetSurvey::table(std::string tokenizer_sha256) const {
  std::vector<NgramTable::Record> known = records_;
  std::erase_if(known, [](const NgramTable::Record& record) { return record.top.count == 0; });
  return NgramTable::of(std::move(known), model_->spec().vocabulary_size,
                        std::move(tokenizer_sha256));
}

}  // namespace sapwood
