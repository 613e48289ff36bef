#include "verify/target_draw.h"

#include <algorithm>
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
  verdict.accepted.clear();
  verdict.emitted.clear();
  int node = DraftTree::kRoot;
  for (;;) {
    const size_t row = static_cast<size_t>(node + 1);
    const Result<int32_t> drawn =
        sampler.choose(logits.subspan(row * width, width), index + verdict.emitted.size());
    if (!drawn.ok()) return drawn.status();
    const int32_t token = drawn.value();
    verdict.emitted.push_back(token);
    sampler.push(token);
    node = tree.find_child(node, token);
    if (node != DraftTree::kNone) verdict.accepted.push_back(node);
    const bool ended = std::find(limits.stop_tokens.begin(), limits.stop_tokens.end(), token) !=
                       limits.stop_tokens.end();
    if (node == DraftTree::kNone || ended ||
        static_cast<int>(verdict.emitted.size()) == limits.max_tokens) {
      return Status::okay();
    }
  }
}

}  // namespace sapwood
