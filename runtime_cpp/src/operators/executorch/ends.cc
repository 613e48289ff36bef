// Both ends of a decoder:
// token_embedding(token_ids[R], table, form, hidden, vocabulary, scale) -> hidden[R, H]
// output_head(hidden[R, H], output_rows[O], norm[H], head, form, norm_epsilon, vocabulary)
//   -> logits[O, V]
#include "operators/executorch/operator.h"

namespace sapwood::executorch {
namespace {

namespace embedding {

enum : size_t { kTokenIds, kTable, kForm, kHidden, kVocabulary, kScale, kOut };
constexpr const char* kNames[] = {"token_ids",  "table", "form", "hidden",
                                  "vocabulary", "scale", "out"};

Status compute(Arguments& call, operators::Resources& resources) {
  Tensor ids;
  LinearWeights table;
  int width = 0;
  int vocabulary = 0;
  float scale = 1.f;
  float* hidden = nullptr;
  SAPWOOD_TRY(call.integer(kHidden, 1, &width));
  SAPWOOD_TRY(call.integer(kVocabulary, 1, &vocabulary));
  SAPWOOD_TRY(call.real(kScale, &scale));
  SAPWOOD_TRY(call.packed(kTable, kForm, vocabulary, width, &table));
  SAPWOOD_TRY(call.tensor(kTokenIds, ScalarType::Int, {kAny}, &ids));
  SAPWOOD_TRY(operators::check_tokens(ids.indices(), vocabulary));
  SAPWOOD_TRY(call.output(kOut, {ids.shape[0], width}, &hidden));
  ThreadTeam& team = resources.team();
  team.run([&](int thread) { token_embedding(table, ids.indices(), scale, hidden, team, thread); });
  resources.show(hidden, static_cast<int>(ids.shape[0]));
  return Status::okay();
}

}  // namespace embedding

namespace head {

enum : size_t { kHidden, kOutputRows, kNorm, kHead, kForm, kNormEpsilon, kVocabulary, kOut };
constexpr const char* kNames[] = {"hidden", "output_rows",  "norm",       "head",
                                  "form",   "norm_epsilon", "vocabulary", "out"};

Status compute(Arguments& call, operators::Resources& resources) {
  Tensor hidden, rows, norm;
  LinearWeights weights;
  float epsilon = 0.f;
  int vocabulary = 0;
  float* logits = nullptr;
  SAPWOOD_TRY(call.tensor(kHidden, ScalarType::Float, {kAny, kAny}, &hidden));
  SAPWOOD_TRY(call.tensor(kOutputRows, ScalarType::Int, {kAny}, &rows));
  SAPWOOD_TRY(call.tensor(kNorm, ScalarType::Float, {hidden.shape[1]}, &norm));
  SAPWOOD_TRY(call.real(kNormEpsilon, &epsilon));
  SAPWOOD_TRY(call.integer(kVocabulary, 1, &vocabulary));
  const int width = static_cast<int>(hidden.shape[1]);
  SAPWOOD_TRY(call.packed(kHead, kForm, vocabulary, width, &weights));
  SAPWOOD_TRY(operators::check_output_rows(rows.indices(), hidden.shape[0]));
  const int count = static_cast<int>(rows.shape[0]);
  SAPWOOD_TRY(call.output(kOut, {count, vocabulary}, &logits));
  if (count == 0) return Status::okay();
  LayerWorkspace& workspace = resources.head_workspace(width, count);
  ThreadTeam& team = resources.team();
  team.run([&](int thread) {
    output_head(norm.as<float>(), epsilon, weights, hidden.as<float>(), width, rows.indices(),
                logits, workspace, team, thread);
  });
  return Status::okay();
}

}  // namespace head
}  // namespace

const OperatorDefinition kTokenEmbedding = {"sapwood::token_embedding.out", embedding::kNames,
                                            embedding::compute};
const OperatorDefinition kOutputHead = {"sapwood::output_head.out", head::kNames, head::compute};

}  // namespace sapwood::executorch
