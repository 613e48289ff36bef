#include "verify/target_draw.h"

#include <string>

namespace sapwood {

Status target_draw(const DraftTree& tree, std::span<const float> logits, Sampler& sampler,
                   uint64_t index, const VerifyLimits& limits, Verdict& verdict) {
  const size_t width = static_cast<size_t>(sampler.vocabulary_size());
  if (logits.size() != width * (static_cast<size_t>(tree.size()) + 1)) {
    return Status(Code::kInternal, "a tree of " + std::to_string(tree.size()) +
                                       " nodes needs logits for each and the root; got " +
                                       std::to_string(logits.size() / width) + " rows");
  }
  if (limits.max_tokens < 1) {
    return Status(Code::kInternal, "a verify step must be allowed to emit one token");
  }
  return target_draw_walk(tree, limits, verdict, [&](int node, size_t position) -> Result<int32_t> {
    const size_t row = static_cast<size_t>(node + 1);
    Result<int32_t> drawn = sampler.choose(logits.subspan(row * width, width), index + position);
    if (drawn.ok()) sampler.push(drawn.value());
    return drawn;
  });
}

}  // namespace sapwood
