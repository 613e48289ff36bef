#include "draft/draft_cache.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "draft/model_network.h"
#include "memory/pooled_floats.h"

namespace sapwood {
namespace {

// So many rows whose hidden states have come are a prompt's, and are read without waiting for a
// tree.
constexpr int kReadAtOnce = 32;

// So many new rows are worth a moment to share them with others while the text still grows.
constexpr int kShareAtOnce = 64;

}  // namespace

DraftCache::DraftCache(std::unique_ptr<DraftNetwork> network, int max_nodes,
                       std::shared_ptr<DraftMemory> memory)
    : network_(std::move(network)),
      memory_(memory != nullptr ? std::move(memory) : std::make_shared<DraftMemory>()),
      layout_(network_->max_rows(),
              std::clamp(max_nodes, 1, std::max(network_->max_rows() - 1, 1))),
      logits_(pooled_floats((1 + static_cast<size_t>(layout_.max_nodes())) * network_->law_size())),
      states_(static_cast<size_t>(layout_.max_rows()) * network_->hidden_state_size()) {}

DraftCache::DraftCache(std::shared_ptr<Model> model, int max_nodes)
    : DraftCache(std::make_unique<ModelNetwork>(std::move(model)), max_nodes) {}

DraftCache::~DraftCache() { share(); }

Status DraftCache::set_text(std::span<const int32_t> tokens, int max_tokens) {
  const int context = network_->context_length();
  const int limit = context > 0 ? std::min(max_tokens, context) : max_tokens;
  if (network_->reads_hidden_states()) {
    // What waited for a tree: others may go on from here.
    SAPWOOD_TRY(read_rows(std::min(states_taken(), rows() - 1) - read_));
  }
  share();
  if (limit > limit_) SAPWOOD_TRY(make_room(limit));
  const size_t shorter = std::min(text_.size(), tokens.size());
  const int common = static_cast<int>(
      std::mismatch(tokens.begin(), tokens.begin() + shorter, text_.begin()).first -
      tokens.begin());
  state_rows_ = std::clamp(common - first_state_, 0, state_rows_);
  text_.reserve(max_tokens);
  text_.assign(tokens.begin(), tokens.end());
  network_->begin_text(tokens);
  // The last row is read again, into a slot of its own; without K and V it is all there is to read.
  read_ = std::max(rows() - 1, 0);
  if (cache_ != nullptr) {
    const int most = std::min(read_, limit_) + network_->skipped_tokens();
    const int known = slots_->begin(tokens.first(std::min<size_t>(most, tokens.size())));
    read_ = std::max(known - network_->skipped_tokens(), 0);
    if (!memory_->share_prefixes) cache_->forget();
  }
  reserved_ = reserve();
  begin_tree();
  return Status::okay();
}

// Room for texts of `limit` tokens, their trees, and as many other tokens as the target may keep.
Status DraftCache::make_room(int limit) {
  const int own = limit + network_->skipped_tokens() + DraftTree::kCapacity;
  const int all = own + DraftTree::kCapacity + memory_->kept_tokens;
  std::shared_ptr<PrefixCache> cache = memory_->cache;
  if (cache == nullptr || cache->slots() < all) {
    Result<std::unique_ptr<KvStore>> kv = network_->make_kv(all);
    if (!kv.ok()) return kv.status();
    cache = kv.value() == nullptr ? nullptr : std::make_shared<PrefixCache>(std::move(kv).value());
  }
  slots_.reset();
  cache_ = memory_->cache = std::move(cache);
  if (cache_ != nullptr) {
    slots_.emplace(cache_, own);
  } else {
    numbers_.resize(static_cast<size_t>(own));
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  limit_ = limit;
  return Status::okay();
}

// A slot for every token and every node that there may be. False where other texts hold too many,
// and for a text longer than the network looks at; no pass can be run then.
bool DraftCache::reserve() {
  if (rows() > limit_) return false;
  if (cache_ == nullptr) return true;
  std::array<int32_t, DraftTree::kCapacity> more;
  for (;;) {
    const int missing = static_cast<int>(text_.size()) + DraftTree::kCapacity - slots_->size();
    if (missing <= 0) return true;
    const std::span<int32_t> next =
        std::span<int32_t>(more).first(std::min(static_cast<size_t>(missing), more.size()));
    if (!cache_->allocate(next)) return false;
    slots_->append(next);
  }
}

// What is read of the text is there for others.
void DraftCache::share() {
  if (!slots_.has_value() || read_ == 0) return;
  const int tokens = read_ + network_->skipped_tokens();
  if (tokens > slots_->shared()) {
    slots_->share(std::span<const int32_t>(text_).first(static_cast<size_t>(tokens)));
  }
}

void DraftCache::share_much() {
  if (cache_ == nullptr) return;
  if (read_ + network_->skipped_tokens() >= slots_->shared() + kShareAtOnce) share();
}

void DraftCache::append(std::span<const int32_t> tokens) {
  share_much();
  const int first_slot = rows();  // of the nodes
  int node = network_->reads_hidden_states() ? DraftTree::kNone : DraftTree::kRoot;
  for (const int32_t token : tokens) {
    if (node != DraftTree::kNone) node = nodes_.find_child(node, token);
    if (node != DraftTree::kNone) {
      // There are nodes only where the whole text was read, so `read_` is this token's place. A
      // node is numbered after its parent, so none lies before the place it moves to, and copying
      // in order overwrites nothing that is still needed.
      cache_->kv().copy_slot(row_slots()[first_slot + node], row_slots()[read_]);
      ++read_;
    }
    text_.push_back(token);
  }
  network_->extend_text(tokens);
  reserved_ = reserve();
  begin_tree();
}

void DraftCache::append_keeping(std::span<const int32_t> tokens, int node,
                                std::span<int16_t> renumbered) {
  share_much();
  KvStore& kv = cache_->kv();
  const int first_slot = rows();
  const int appended = static_cast<int>(tokens.size());
  std::array<int, DraftTree::kCapacity> path;
  nodes_.path(node, path);
  if (!network_->reads_hidden_states()) {
    for (int i = 0; i < appended; ++i) {
      kv.copy_slot(row_slots()[first_slot + path[i]], row_slots()[first_slot + i]);
    }
    read_ += appended;
  }
  network_->move_node(node, DraftTree::kRoot);
  kept_.clear();
  std::fill(renumbered.begin(), renumbered.begin() + std::min(node + 1, nodes_.size()),
            static_cast<int16_t>(DraftTree::kNone));
  // The path lies before the nodes below it, so none of these moves up, and copying in order
  // overwrites nothing that is still needed.
  for (int old = node + 1; old < nodes_.size(); ++old) {
    const int parent = nodes_.parent(old);
    const int above = parent == node               ? DraftTree::kRoot
                      : parent == DraftTree::kRoot ? DraftTree::kNone
                                                   : renumbered[parent];
    renumbered[old] = DraftTree::kNone;
    if (above == DraftTree::kNone) continue;
    const int kept = kept_.add(above, nodes_.token(old), 0.f, 0.f, 0.f);
    renumbered[old] = static_cast<int16_t>(kept);
    kv.copy_slot(row_slots()[first_slot + old], row_slots()[first_slot + appended + kept]);
    network_->move_node(old, kept);
  }
  text_.insert(text_.end(), tokens.begin(), tokens.end());
  network_->extend_text(tokens);
  reserved_ = reserve();
  nodes_ = kept_;
  first_ = looked_ = nodes_.size();
  root_kept_ = true;
}

int DraftCache::states_taken() const {
  if (!network_->reads_hidden_states()) return static_cast<int>(text_.size());
  const bool joined = first_state_ <= read_ && read_ <= first_state_ + state_rows_;
  return joined ? first_state_ + state_rows_ : read_;
}

Status DraftCache::take_states(int first, std::span<const float> states) {
  const size_t size = static_cast<size_t>(network_->hidden_state_size());
  if (size == 0) return Status::okay();
  for (; states.size() >= size && first < rows(); states = states.subspan(size), ++first) {
    const int next = states_taken();
    if (first < next) continue;
    if (first > next) return Status::okay();  // depth_left() says that some are missing
    if (state_rows_ == layout_.max_rows() || first_state_ + state_rows_ != next) {
      // Full, or what is there belongs to another text.
      SAPWOOD_TRY(read_rows(next - read_));
      first_state_ = next;
      state_rows_ = 0;
    }
    std::copy(states.begin(), states.begin() + static_cast<ptrdiff_t>(size),
              states_.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(state_rows_) * size));
    ++state_rows_;
  }
  const int ready = std::min(states_taken(), rows() - 1) - read_;
  if (ready >= kReadAtOnce) SAPWOOD_TRY(read_rows(ready));
  share_much();
  return Status::okay();
}

std::span<const float> DraftCache::states_of(int row, int count) const {
  const size_t size = static_cast<size_t>(network_->hidden_state_size());
  if (size == 0 || count == 0) return {};
  return std::span<const float>(states_).subspan(static_cast<size_t>(row - first_state_) * size,
                                                 static_cast<size_t>(count) * size);
}

void DraftCache::begin_tree() {
  nodes_.clear();
  root_kept_ = false;
  first_ = looked_ = 0;
  read_ = std::min(read_, std::max(rows() - 1, 0));
}

int DraftCache::depth_left() const {
  if (!reserved_ || rows() == 0 || states_taken() < rows()) return -1;
  return std::min(limit_ - rows(), network_->max_depth());
}

bool DraftCache::may_add(int parent) const {
  if (!network_->reads_hidden_states()) return true;
  return parent == DraftTree::kRoot ? root_kept_ || unread() == 0 : parent < looked_;
}

int DraftCache::add(int parent, int32_t token) {
  const int rows_so_far = nodes_.size() - looked_ + (unread() > 0 ? 1 : 0);
  if (nodes_.size() - looked_ >= max_nodes() || rows_so_far >= layout_.max_rows() ||
      nodes_.depth(parent) >= depth_left() || !may_add(parent)) {
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

// The next `count` rows of the text, without their laws.
Status DraftCache::read_rows(int count) {
  static const DraftTree kNoNodes{};
  if (cache_ == nullptr) {
    read_ += std::max(count, 0);
    return Status::okay();
  }
  if (!reserved_) return Status::okay();
  for (; count > 0;) {
    const int rows = std::min(count, layout_.max_rows());
    const RowBatch batch = layout_.rows(row_tokens().subspan(read_, rows), false, kNoNodes, 0,
                                        row_slots().first(read_), row_slots().subspan(read_, rows));
    SAPWOOD_TRY(
        network_->forward({batch, rows, states_of(read_, rows), kNoNodes, 0}, &cache_->kv(), {}));
    read_ += rows;
    count -= rows;
  }
  return Status::okay();
}

Status DraftCache::read_text_and_look() {
  const int rows_of_nodes = nodes_.size() - looked_;
  if (cache_ == nullptr) SAPWOOD_TRY(read_rows(unread() - 1));
  // All that does not fit beside the nodes is read before.
  while (unread() + rows_of_nodes > layout_.max_rows()) {
    SAPWOOD_TRY(read_rows(std::min(unread() - 1, layout_.max_rows())));
  }
  const int text_rows = unread();
  root_rows_ = text_rows > 0 ? 1 : 0;
  const size_t new_slots = static_cast<size_t>(text_rows) + static_cast<size_t>(nodes_.size());
  const RowBatch batch =
      layout_.rows(row_tokens().subspan(read_), true, nodes_, looked_, row_slots().first(read_),
                   row_slots().subspan(read_, new_slots));
  const size_t outputs = batch.output_rows.size();
  SAPWOOD_TRY(network_->forward({batch, text_rows, states_of(read_, text_rows), nodes_, looked_},
                                cache_ != nullptr ? &cache_->kv() : nullptr,
                                {logits_.get(), outputs * network_->law_size()}));
  read_ = rows();
  return Status::okay();
}

std::span<const float> DraftCache::logits(int node) const {
  const size_t size = static_cast<size_t>(network_->law_size());
  const size_t row = node == DraftTree::kRoot ? 0 : static_cast<size_t>(root_rows_ + node - first_);
  return {logits_.get() + row * size, size};
}

}  // namespace sapwood
