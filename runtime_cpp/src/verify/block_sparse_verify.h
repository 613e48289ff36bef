// The operator BlockSparseVerify: which nodes of a tree the target agrees with.
//
//   target_logits [R, V], draft_logits [R, V], tree_mask uint8 [R, W], importance_weights float
//   [R, W], draw int32 [2] (optional) {verifier, temperature} -> accepted_length int32 [1],
//   new_kv_indices int32 [R - 1], next_token int32 [1]
//
// The last three inputs describe a tree in breadth-first order with the columns of
// DynamicTreePrune: row 0 is the root, row 1 + v node v. Entry (r, k) of the mask is 0 when the
// k-th likeliest token of draft row r is no child of that row's node; the others are its children,
// numbered on from row to row, in the order of the mask's values and, where those are equal, of k.
// So a ranked tree has ones, a sampled one 1, 2, 3 in the order of drawing. There must be R - 1
// children in all. importance_weights above 0 mark what q~ was renormalised over: log q~ = log q +
// log w, summing to one in every row that has children. draft_logits are what DynamicTreePrune saw
// (and what was drawn from); temperature applies to target_logits.
//
// verifier: "target_draw" for ranked trees (temperature 0: greedy); "rejection", "traversal" or,
// for chains, "block" for sampled ones. draw: seed and output position of the first emitted token,
// 0 and 0 if left out; the same numbers as plain decoding's under target_draw.
//
// accepted_length: nodes on the accepted path. new_kv_indices: these nodes in order, padded with
// -1: their K and V stay. next_token: what comes after them.
//
// log p - log q~ is computed for the candidates only and p itself is left alone (MATH.md, section
// 4).
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "tree/candidates.h"
#include "tree/draft_tree.h"
#include "tree/proposals.h"
#include "verify/target_draw.h"
#include "verify/verifier.h"
#include "verify/workspace.h"

namespace sapwood {

struct BlockSparseTree {
  int rows = 0;  // 1 + nodes
  int vocabulary = 0;
  int width = 0;                              // columns of the mask, 1 to Candidates::kMost
  std::span<const float> target_logits;       // [rows][vocabulary]
  std::span<const float> draft_logits;        // [rows][vocabulary]
  std::span<const uint8_t> tree_mask;         // [rows][width]
  std::span<const float> importance_weights;  // [rows][width]
};

struct BlockSparseOptions {
  Verifier verifier = Verifier::kTargetDraw;
  float temperature = 0.f;
  uint64_t seed = 0;
  uint64_t position = 0;
};

// Made once for a vocabulary; verifying allocates nothing unless it fails.
class BlockSparseVerifier {
 public:
  explicit BlockSparseVerifier(int vocabulary);

  Status verify(const BlockSparseTree& input, const BlockSparseOptions& options,
                int32_t* accepted_length, int32_t* new_kv_indices, int32_t* next_token);

 private:
  Status read_tree(const BlockSparseTree& input, bool sampled);
  Status read_row(const BlockSparseTree& input, int row, bool sampled);

  CandidateSelector selector_;
  Sampler sampler_;
  VerifyWorkspace workspace_;
  DraftTree tree_;
  Proposals proposals_;
  Verdict verdict_;
};

}  // namespace sapwood
