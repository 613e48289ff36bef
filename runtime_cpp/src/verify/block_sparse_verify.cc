#include "verify/block_sparse_verify.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "verify/chance.h"
#include "verify/node_laws.h"
#include "verify/verify_sampled.h"

namespace sapwood {
namespace {

constexpr double kWholeTolerance = 1e-3;  // of the sum of q~, whose logits and weights are floats

Status misfit(int row, const std::string& what) {
  return Status(Code::kInvalidArgument, "row " + std::to_string(row) + " of the tree " + what);
}

}  // namespace

BlockSparseVerifier::BlockSparseVerifier(int vocabulary)
    : selector_(vocabulary), sampler_(vocabulary), workspace_(vocabulary) {
  verdict_.reserve(DraftTree::kCapacity + 1);
}

Status BlockSparseVerifier::read_row(const BlockSparseTree& input, int row, bool sampled) {
  const size_t width = static_cast<size_t>(input.width);
  const std::span<const uint8_t> mask = input.tree_mask.subspan(row * width, width);
  std::array<int, Candidates::kMost> children;
  int n = 0;
  for (int k = 0; k < input.width; ++k) {
    if (mask[k] != 0) children[n++] = k;
  }
  if (n == 0) return Status::okay();
  // Insertion sort by the mask's value: stable, so equal ones stay in the order of rank.
  for (int i = 1; i < n; ++i) {
    const int moving = children[i];
    int at = i;
    for (; at > 0 && mask[children[at - 1]] > mask[moving]; --at) children[at] = children[at - 1];
    children[at] = moving;
  }
  const size_t vocabulary = static_cast<size_t>(input.vocabulary);
  const Result<Candidates> found =
      selector_.select(input.draft_logits.subspan(row * vocabulary, vocabulary), {}, input.width);
  if (!found.ok()) return found.status();
  const Candidates& candidates = found.value();
  const std::span<const float> weights = input.importance_weights.subspan(row * width, width);

  std::array<int32_t, Candidates::kMost> tokens;
  std::array<float, Candidates::kMost> log_q;
  size_t kept = 0;
  double whole = 0;
  for (int k = 0; k < input.width && sampled; ++k) {
    if (!(weights[k] > 0)) continue;
    if (k >= candidates.size() || !std::isfinite(weights[k])) {
      return misfit(row, "keeps a token that the draft gives no probability");
    }
    tokens[kept] = candidates.tokens[k];
    log_q[kept] = candidates.log_q[k] + std::log(weights[k]);
    whole += std::exp(static_cast<double>(log_q[kept++]));
  }
  if (sampled) {
    if (std::abs(whole - 1) > kWholeTolerance ||
        !proposals_.set(row - 1, {tokens.data(), kept}, {log_q.data(), kept})) {
      return misfit(row, "has importance weights that do not renormalise its draft: they sum to " +
                             std::to_string(whole));
    }
  }
  for (int i = 0; i < n; ++i) {
    const int k = children[i];
    if (k >= candidates.size() || (sampled && !(weights[k] > 0))) {
      return misfit(row, "has a child of rank " + std::to_string(k) + ", which was not kept");
    }
    const float log_kept =
        sampled ? candidates.log_q[k] + std::log(weights[k]) : candidates.log_q[k];
    if (tree_.add(row - 1, candidates.tokens[k], candidates.log_q[k], log_kept, 0.5f) ==
        DraftTree::kNone) {
      return misfit(row, "has more nodes below it than a tree may hold");
    }
    if (sampled) proposals_.mark_drawn(row - 1);
  }
  return Status::okay();
}

Status BlockSparseVerifier::read_tree(const BlockSparseTree& input, bool sampled) {
  tree_.clear();
  proposals_.clear();
  for (int row = 0; row < input.rows; ++row) {
    // Breadth first: a row's own node was made by an earlier one.
    if (row > tree_.size())
      return misfit(row, "belongs to no node: no earlier row has it as child");
    SAPWOOD_TRY(read_row(input, row, sampled));
  }
  if (tree_.size() != input.rows - 1) {
    return Status(Code::kInvalidArgument, "tree_mask has " + std::to_string(tree_.size()) +
                                              " children for " + std::to_string(input.rows - 1) +
                                              " rows beyond the root");
  }
  return Status::okay();
}

Status BlockSparseVerifier::verify(const BlockSparseTree& input, const BlockSparseOptions& options,
                                   int32_t* accepted_length, int32_t* new_kv_indices,
                                   int32_t* next_token) {
  if (input.rows < 1 || input.rows > DraftTree::kCapacity + 1 || input.width < 1 ||
      input.width > Candidates::kMost || input.vocabulary != sampler_.vocabulary_size()) {
    return Status(Code::kInvalidArgument,
                  "a tree of " + std::to_string(input.rows) + " rows, " +
                      std::to_string(input.width) + " columns and " +
                      std::to_string(input.vocabulary) +
                      " tokens; there may be 1 to 257 rows and 1 to 32 columns");
  }
  const bool sampled = options.verifier != Verifier::kTargetDraw;
  if (sampled && options.temperature == 0.f) {
    return Status(Code::kInvalidArgument, "the verifier " +
                                              std::string(verifier_name(options.verifier)) +
                                              " needs a temperature above 0: use target_draw");
  }
  SAPWOOD_TRY(read_tree(input, sampled));
  SAPWOOD_TRY(check_fit(options.verifier, sampled ? TreeOrigin::kSampled : TreeOrigin::kRanked,
                        tree_, &proposals_));
  SAPWOOD_TRY(sampler_.start({.temperature = options.temperature, .seed = options.seed}, {}));
  const VerifyLimits limits{DraftTree::kCapacity + 1, {}};
  if (!sampled) {
    SAPWOOD_TRY(
        target_draw(tree_, input.target_logits, sampler_, options.position, limits, verdict_));
  } else {
    LogitLaws laws(tree_, input.target_logits, sampler_);
    CounterChance chance(options.seed, RandomStream::kAcceptance, options.position);
    const SampledDraft draft{tree_, proposals_};
    SAPWOOD_TRY(
        verify_sampled(options.verifier, draft, laws, chance, limits, workspace_, verdict_));
  }
  *accepted_length = static_cast<int32_t>(verdict_.accepted.size());
  std::fill_n(new_kv_indices, input.rows - 1, -1);
  std::copy(verdict_.accepted.begin(), verdict_.accepted.end(), new_kv_indices);
  *next_token = verdict_.emitted.back();
  return Status::okay();
}

}  // namespace sapwood
