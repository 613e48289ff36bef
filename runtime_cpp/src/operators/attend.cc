#include "operators/attend.h"

#include "kernels/team_share.h"

namespace sapwood::operators {
namespace {

void store(const AttentionShape& shape, const Tensor& k, const Tensor& v, const CacheCall& cache,
           ThreadTeam& team, int thread) {
  const auto [begin, end] = team.share(cache.batch.rows() * shape.kv_heads, thread);
  for (int item = begin; item < end; ++item) {
    const size_t offset = static_cast<size_t>(item) * shape.head_dim;
    kernels().store_kv(cache.kv, item % shape.kv_heads, cache.batch.slots[item / shape.kv_heads],
                       k.as<float>() + offset, v.as<float>() + offset);
  }
}

}  // namespace

Status set_heads(const Tensor& q, const Tensor& k, AttentionShape* shape) {
  shape->heads = static_cast<int>(q.shape[1]);
  shape->kv_heads = static_cast<int>(k.shape[1]);
  shape->head_dim = static_cast<int>(q.shape[2]);
  return check_heads(*shape);
}

void attend(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
            const CacheCall& cache, float* out, Resources& resources) {
  const int rows = cache.batch.rows();
  if (rows == 0) return;
  const int width = shape.heads * shape.head_dim;
  size_t stride = 0;
  float* scratch = resources.attention_scratch(
      attention_scratch_floats(shape, cache.batch, kAttentionRows), &stride);
  ThreadTeam& team = resources.team();
  team.run([&](int thread) {
    store(shape, k, v, cache, team, thread);
    team.barrier();
    for_each_attention_run(shape, rows, team, thread, [&](const AttentionRun& run) {
      kernels().attention(shape, cache.batch, cache.kv, run.head_begin, run.head_end, run.row_begin,
                          run.row_end, q.as<float>(), width, out, width, scratch + stride * thread);
    });
  });
}

}  // namespace sapwood::operators
