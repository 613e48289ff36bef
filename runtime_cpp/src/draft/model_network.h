// A whole model that drafts: another bundle's, or the target's first layers.
#pragma once

#include <memory>
#include <utility>

#include "draft/draft_network.h"
#include "model/model.h"

namespace sapwood {

class ModelNetwork final : public DraftNetwork {
 public:
  explicit ModelNetwork(std::shared_ptr<Model> model) : model_(std::move(model)) {}

  int vocabulary_size() const override { return model_->spec().vocabulary_size; }
  int context_length() const override { return model_->spec().context_length; }
  int max_rows() const override { return model_->max_rows(); }
  int law_size() const override { return model_->spec().vocabulary_size; }
  Result<std::unique_ptr<KvStore>> make_kv(int slots) const override {
    const ModelSpec& spec = model_->spec();
    return KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, slots);
  }
  Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) override {
    return model_->forward(pass.batch, *kv, logits);
  }

 private:
  const std::shared_ptr<Model> model_;
};

}  // namespace sapwood
