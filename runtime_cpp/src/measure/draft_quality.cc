#include "measure/draft_quality.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "verify/sampling.h"

namespace sapwood {
namespace {

double milliseconds_since(Clock::time_point begin) { return 1e3 * seconds_since(begin); }

}  // namespace

DraftQuality::DraftQuality(std::shared_ptr<Model> target, std::unique_ptr<DraftNetwork> network,
                           int depths, int context_length, std::unique_ptr<KvStore> kv)
    : target_(std::move(target)),
      depths_(depths),
      context_length_(context_length),
      kv_(std::move(kv)),
      cache_(std::move(network), 32),
      layout_(target_->max_rows()),
      slots_(static_cast<size_t>(context_length)) {
  std::iota(slots_.begin(), slots_.end(), 0);
}

Result<std::unique_ptr<DraftQuality>> DraftQuality::create(std::shared_ptr<Model> target,
                                                           const TrainedDraft& draft, int depths,
                                                           int context_length) {
  const ModelSpec& spec = target->spec();
  if (depths < 1 || context_length < 2 || context_length > spec.context_length) {
    return Status(Code::kInvalidArgument,
                  "a draft is compared at 1 or more depths, in a context of 2 to " +
                      std::to_string(spec.context_length) + " tokens");
  }
  std::unique_ptr<DraftNetwork> network = draft.make_network();
  SAPWOOD_TRY(target->keep_hidden_states(network->hidden_layers()));
  Result<std::unique_ptr<KvStore>> kv =
      KvStore::create(spec.layers, spec.kv_heads, spec.head_dim, context_length);
  if (!kv.ok()) return kv.status();
  return std::unique_ptr<DraftQuality>(new DraftQuality(
      std::move(target), std::move(network), depths, context_length, std::move(kv).value()));
}

Status DraftQuality::run_target(int done, int rows, std::span<const int32_t> text,
                                std::span<float> logits) {
  const std::span<const int32_t> slots(slots_);
  RowBatch batch =
      layout_.text_rows(text.subspan(done, rows), slots.first(done), slots.subspan(done, rows));
  const int vocabulary = target_->spec().vocabulary_size;
  const int asked = static_cast<int>(logits.size()) / vocabulary;  // of the last rows
  batch.output_rows = slots.subspan(rows - asked, asked);
  return target_->forward(batch, *kv_, logits);
}

// The target's laws and hidden states of positions first - 1 .. the last but one of the text; the
// draft is shown the hidden states before.
Status DraftQuality::read_target(std::span<const int32_t> text, int first) {
  const size_t vocabulary = static_cast<size_t>(target_->spec().vocabulary_size);
  const size_t size = static_cast<size_t>(cache_.network().hidden_state_size());
  SAPWOOD_TRY(target_->keep_hidden_states(cache_.network().hidden_layers()));
  first_row_ = first - 1;
  const int rows = static_cast<int>(text.size()) - 1;
  log_p_.resize(static_cast<size_t>(rows - first_row_) * vocabulary);
  states_.resize(static_cast<size_t>(rows - first_row_) * size);
  for (int done = 0; done < rows;) {
    const bool prompt = done < first_row_;
    const int count = std::min(target_->max_rows(), (prompt ? first_row_ : rows) - done);
    const size_t from = prompt ? 0 : static_cast<size_t>(done - first_row_);
    const std::span<float> logits =
        prompt ? std::span<float>()
               : std::span<float>(log_p_).subspan(from * vocabulary, count * vocabulary);
    SAPWOOD_TRY(run_target(done, count, text, logits));
    const std::span<const float> states = target_->hidden_states();
    if (prompt) {
      SAPWOOD_TRY(cache_.take_states(done, states));
    } else {
      std::copy(states.begin(), states.end(),
                states_.begin() + static_cast<ptrdiff_t>(from * size));
      for (int row = 0; row < count; ++row) {
        float* law = logits.data() + static_cast<size_t>(row) * vocabulary;
        kernels().log_softmax(law, static_cast<int>(vocabulary), law);
      }
    }
    done += count;
  }
  return Status::okay();
}

DraftComparison DraftQuality::comparison(int position, int depth, int node) {
  const std::span<const float> logits = cache_.logits(node);
  const std::span<const int32_t> ids = cache_.network().token_ids();
  const size_t vocabulary = static_cast<size_t>(target_->spec().vocabulary_size);
  const std::span<const float> log_p = std::span<const float>(log_p_).subspan(
      static_cast<size_t>(position - 1 - first_row_) * vocabulary, vocabulary);
  const int32_t wanted = argmax(log_p);
  const int best = argmax(logits);
  const auto token = [&](int entry) { return ids.empty() ? entry : ids[entry]; };
  double mass = 0;
  for (const float logit : logits) mass += std::exp(static_cast<double>(logit) - logits[best]);
  double overlap = 0;
  double entropy = std::log(mass);
  for (size_t i = 0; i < logits.size(); ++i) {
    if (token(static_cast<int>(i)) < 0) continue;
    const double score = static_cast<double>(logits[i]) - logits[best];
    const double q = std::exp(score) / mass;
    entropy -= q * score;
    overlap += std::min(q, std::exp(static_cast<double>(log_p[token(static_cast<int>(i))])));
  }
  const std::optional<float> uncertainty = cache_.uncertainty(node);
  return {position,
          depth,
          token(best) == wanted,
          cache_.network().entry_of(wanted) >= 0,
          static_cast<float>(overlap),
          static_cast<float>(entropy),
          uncertainty.value_or(-1.f)};
}

Result<std::vector<DraftComparison>> DraftQuality::compare(std::span<const int32_t> text,
                                                           int first) {
  const int length = static_cast<int>(text.size());
  const int vocabulary = target_->spec().vocabulary_size;
  const bool known =
      std::all_of(text.begin(), text.end(), [&](int32_t t) { return t >= 0 && t < vocabulary; });
  if (first < 1 || first >= length || length > context_length_ || !known) {
    return Status(Code::kInvalidArgument,
                  "a text of " + std::to_string(length) + " tokens from token " +
                      std::to_string(first) + " on does not fit a context of " +
                      std::to_string(context_length_) + " and the vocabulary");
  }
  SAPWOOD_TRY(cache_.set_text({}, context_length_));  // another target may have filled it
  SAPWOOD_TRY(cache_.set_text(text.first(first), context_length_));
  SAPWOOD_TRY(read_target(text, first));
  const size_t size = static_cast<size_t>(cache_.network().hidden_state_size());
  std::vector<DraftComparison> found;
  for (int next = first; next < length; ++next) {  // text [0, next) is verified
    cache_.begin_tree();
    int node = DraftTree::kRoot;
    for (int depth = 1; depth <= depths_ && next + depth - 1 < length; ++depth) {
      const int position = next + depth - 1;
      if (depth > 1) node = cache_.add(node, text[position - 1]);
      if (node == DraftTree::kNone || cache_.depth_left() < 0) break;
      SAPWOOD_TRY(cache_.pass());
      found.push_back(comparison(position, depth, node));
    }
    cache_.append(text.subspan(next, 1));
    const size_t row = static_cast<size_t>(next - 1 - first_row_);
    SAPWOOD_TRY(
        cache_.take_states(next - 1, std::span<const float>(states_).subspan(row * size, size)));
  }
  return found;
}

Result<DraftQuality::Cost> DraftQuality::cost(int context, int unread, int nodes) {
  if (context < 2 || context >= context_length_ || unread < 1 || unread >= context || nodes < 1 ||
      nodes > cache_.max_nodes()) {
    return Status(Code::kInvalidArgument, "a cost is measured inside a context of " +
                                              std::to_string(context_length_) + " tokens");
  }
  const int vocabulary = target_->spec().vocabulary_size;
  std::vector<int32_t> text(static_cast<size_t>(context));
  for (int i = 0; i < context; ++i) text[i] = (i * 37 + 11) % vocabulary;
  const size_t size = static_cast<size_t>(cache_.network().hidden_state_size());
  const std::vector<float> states(static_cast<size_t>(context) * size, 0.5f);
  std::vector<float> logits(static_cast<size_t>(vocabulary));
  const std::span<const int32_t> all(text);
  const std::span<const float> shown(states);
  const size_t before = static_cast<size_t>(context - unread);
  SAPWOOD_TRY(cache_.set_text({}, context_length_));
  SAPWOOD_TRY(cache_.set_text(all.first(before), context_length_));
  SAPWOOD_TRY(cache_.take_states(0, shown.first((before - 1) * size)));
  if (cache_.depth_left() >= 0) SAPWOOD_TRY(cache_.pass());
  cache_.append(all.subspan(before));
  SAPWOOD_TRY(cache_.take_states(static_cast<int>(before) - 1,
                                 shown.first(static_cast<size_t>(unread) * size)));
  Cost cost;
  Clock::time_point begin = Clock::now();
  SAPWOOD_TRY(run_target(context - 1, 1, all, logits));
  cost.target_row = milliseconds_since(begin);
  begin = Clock::now();
  SAPWOOD_TRY(cache_.pass());
  cost.text_pass = milliseconds_since(begin);
  SAPWOOD_TRY(run_target(context - 1, 1, all, logits));
  for (int node = 0; node < nodes; ++node) {
    if (cache_.add(DraftTree::kRoot, node) == DraftTree::kNone) {
      return Status(Code::kInvalidArgument, "the draft looks beyond no nodes at all");
    }
  }
  begin = Clock::now();
  SAPWOOD_TRY(cache_.pass());
  cost.node_pass = milliseconds_since(begin);
  return cost;
}

}  // namespace sapwood
