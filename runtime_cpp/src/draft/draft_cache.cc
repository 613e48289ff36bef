#include "draft/draft_cache.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sapwood {

DraftCache::DraftCache(std::shared_ptr<Model> model, int max_nodes)
    : model_(std::move(model)),
      layout_(model_->max_rows(), std::clamp(max_nodes, 1, std::max(model_->max_rows() - 1, 1))),
      logits_(new float[(1 + static_cast<size_t>(layout_.max_nodes())) *
                        model_->spec().vocabulary_size]) {}

Status DraftCache::set_text(std::span<const int32_t> tokens, int max_tokens) {
  const ModelSpec& spec = model_->spec();
  const int limit =
      spec.context_length > 0 ? std::min(max_tokens, spec.context_length) : max_tokens;
  if (kv_ == nullptr || limit > limit_) {
    const int slots = limit + DraftTree::kCapacity;
    Result<std::unique_ptr<KvStore>> kv =
        KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, slots);
    if (!kv.ok()) return kv.status();
    kv_ = std::move(kv).value();
    limit_ = limit;
    slots_.resize(slots);
    std::iota(slots_.begin(), slots_.end(), 0);
    read_ = 0;
  }
  const size_t shared = std::min(static_cast<size_t>(read_), tokens.size());
  read_ = static_cast<int>(
      std::mismatch(tokens.begin(), tokens.begin() + shared, text_.begin()).first - tokens.begin());
  text_.reserve(max_tokens);
  text_.assign(tokens.begin(), tokens.end());
  begin_tree();
  return Status::okay();
}

void DraftCache::append(std::span<const int32_t> tokens) {
  const int first_slot = static_cast<int>(text_.size());  // of the nodes
  int node = DraftTree::kRoot;
  for (const int32_t token : tokens) {
    if (node != DraftTree::kNone) node = nodes_.find_child(node, token);
    if (node != DraftTree::kNone) {
      // There are nodes only where the whole text was read, so `read_` is this token's place. A
      // node is numbered after its parent, so none lies before the place it moves to, and copying
      // in order overwrites nothing that is still needed.
      kv_->copy_slot(first_slot + node, read_);
      ++read_;
    }
    text_.push_back(token);
  }
  begin_tree();
}

void DraftCache::begin_tree() {
  nodes_.clear();
  first_ = looked_ = 0;
  read_ = std::min(read_, std::max(static_cast<int>(text_.size()) - 1, 0));
}

int DraftCache::depth_left() const {
  return text_.empty() ? -1 : limit_ - static_cast<int>(text_.size());
}

int DraftCache::add(int parent, int32_t token) {
  const int rows = nodes_.size() - looked_ + (unread() > 0 ? 1 : 0);
  if (nodes_.size() - looked_ >= max_nodes() || rows >= layout_.max_rows() ||
      nodes_.depth(parent) >= depth_left()) {
    return DraftTree::kNone;
  }
  return nodes_.add(parent, token, 0.f, 0.f, 0.f);
}

Status DraftCache::pass() {
  const Status passed = read_text_and_look();
  if (!passed.ok()) {
    nodes_.truncate(looked_);
    return passed;
  }
  first_ = looked_;
  looked_ = nodes_.size();
  return passed;
}

Status DraftCache::read_text_and_look() {
  const int rows_of_nodes = nodes_.size() - looked_;
  const std::span<const int32_t> text(text_);
  const std::span<const int32_t> slots(slots_);
  // All that does not fit beside the nodes is read before.
  while (unread() + rows_of_nodes > layout_.max_rows()) {
    const int rows = std::min(unread() - 1, layout_.max_rows());
    static const DraftTree kNoNodes{};
    const RowBatch batch = layout_.rows(text.subspan(read_, rows), false, kNoNodes, 0,
                                        slots.first(read_), slots.subspan(read_, rows));
    SAPWOOD_TRY(model_->forward(batch, *kv_, {}));
    read_ += rows;
  }
  root_rows_ = unread() > 0 ? 1 : 0;
  const RowBatch batch = layout_.rows(
      text.subspan(read_), true, nodes_, looked_, slots.first(read_),
      slots.subspan(read_, static_cast<size_t>(unread()) + static_cast<size_t>(nodes_.size())));
  const size_t outputs = batch.output_rows.size();
  SAPWOOD_TRY(
      model_->forward(batch, *kv_, {logits_.get(), outputs * model_->spec().vocabulary_size}));
  read_ = static_cast<int>(text_.size());
  return Status::okay();
}

std::span<const float> DraftCache::logits(int node) const {
  const size_t vocabulary = model_->spec().vocabulary_size;
  const size_t row = node == DraftTree::kRoot ? 0 : static_cast<size_t>(root_rows_ + node - first_);
  return {logits_.get() + row * vocabulary, vocabulary};
}

}  // namespace sapwood
