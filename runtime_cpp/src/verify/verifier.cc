#include "verify/verifier.h"

#include <array>
#include <string>
#include <utility>

#include "verify/workspace.h"

namespace sapwood {
namespace {

constexpr std::array<std::pair<Verifier, std::string_view>, 4> kNames = {
    {{Verifier::kTargetDraw, "target_draw"},
     {Verifier::kRejection, "rejection"},
     {Verifier::kBlock, "block"},
     {Verifier::kTraversal, "traversal"}}};

Status refuse(Verifier verifier, const std::string& why) {
  return Status(Code::kInvalidArgument,
                "the verifier " + std::string(verifier_name(verifier)) + " " + why);
}

}  // namespace

std::optional<Verifier> parse_verifier(std::string_view name) {
  for (const auto& [verifier, known] : kNames) {
    if (known == name) return verifier;
  }
  return std::nullopt;
}

std::string_view verifier_name(Verifier verifier) {
  for (const auto& [known, name] : kNames) {
    if (known == verifier) return name;
  }
  return "unknown";
}

Status check_fit(Verifier verifier, TreeOrigin origin, const DraftTree& tree,
                 const Proposals* proposals) {
  if (verifier == Verifier::kTargetDraw) return Status::okay();
  if (origin == TreeOrigin::kRanked) {
    return refuse(verifier,
                  "needs sampled nodes; this tree's were chosen by rank: use target_draw");
  }
  if (origin == TreeOrigin::kReranked) {
    return refuse(verifier,
                  "needs every drawn node; this tree was re-ranked and cut: use target_draw");
  }
  if (tree.empty()) return Status::okay();
  if (proposals == nullptr) {
    return refuse(verifier, "needs the law each node was drawn from; this tree carries no log q");
  }
  for (int node = DraftTree::kRoot; node < tree.size(); ++node) {
    const Proposals::View proposal = proposals->at(node);
    const std::string where =
        node == DraftTree::kRoot ? std::string("the root") : "node " + std::to_string(node);
    int children = 0;
    for (int child = tree.first_child(node); child != DraftTree::kNone;
         child = tree.next_sibling(child)) {
      ++children;
      const int entry = proposal_entry(proposal, tree.token(child));
      if (entry < 0 || !(proposal.q[entry] > 0)) {
        return refuse(verifier, "needs the law each node was drawn from; a child of " + where +
                                    " carries no log q");
      }
    }
    if (children != proposals->drawn(node)) {
      return refuse(verifier, "needs every drawn node; of " +
                                  std::to_string(proposals->drawn(node)) + " children drawn at " +
                                  where + " the tree holds " + std::to_string(children));
    }
    if (verifier == Verifier::kBlock && children > 1) {
      return refuse(verifier, "needs a chain; " + where + " has " + std::to_string(children) +
                                  " children: use traversal or rejection");
    }
  }
  return Status::okay();
}

}  // namespace sapwood
