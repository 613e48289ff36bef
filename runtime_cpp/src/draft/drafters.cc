#include "draft/drafters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "draft/mix_drafter.h"
#include "draft/ngram_drafter.h"
#include "draft/successor_drafter.h"

namespace sapwood {
namespace {

// To see what a session costs without any drafting, whatever its mode.
class NoDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override {
    static const DrafterTraits kTraits{.name = "none", .gives_proposals = true};
    return kTraits;
  }
  Status start(std::span<const int32_t>, int) override { return Status::okay(); }
  void follow(std::span<const int32_t>) override {}
  Status propose(const DraftRequest&, DraftTree&) override { return Status::okay(); }
  Status propose_sampled(const DraftRequest&, Chance&, DraftTree&, Proposals&) override {
    return Status::okay();
  }
};

bool takes_table(std::string_view name) {
  return name == "mix" || name == "successor" || name == "cascade";
}

Status refuse(std::string_view name, const std::string& what) {
  return Status(Code::kInvalidArgument, "the drafter " + std::string(name) + ' ' + what);
}

}  // namespace

bool drafter_needs_model(std::string_view name) {
  return name == "model" || name == "early-exit" || name == "cascade";
}

Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name, const DrafterParts& parts) {
  const auto known = std::find(kDrafterNames.begin(), kDrafterNames.end(), name);
  if (known == kDrafterNames.end()) {
    std::string names;
    for (const std::string_view each : kDrafterNames) {
      names += (names.empty() ? "" : ", ") + std::string(each);
    }
    return Status(Code::kInvalidArgument,
                  "drafter must be one of " + names + ", not \"" + std::string(name) + '"');
  }
  if (parts.saved != nullptr && !takes_table(name)) {
    return refuse(name, "uses no saved n-gram table; mix, successor and cascade do");
  }
  if (drafter_needs_model(name)) {
    if (parts.model == nullptr) return refuse(name, "needs a model that drafts; give it one");
    // Names in the list live as long as the program.
    std::unique_ptr<Drafter> first;
    if (name == "cascade") first = std::make_unique<MixDrafter>(parts.saved);
    return std::unique_ptr<Drafter>(
        std::make_unique<ModelDrafter>(*known, parts.model, parts.model_options, std::move(first)));
  }
  if (parts.model != nullptr) {
    return refuse(name, "runs no model; model, early-exit and cascade do");
  }
  std::unique_ptr<Drafter> drafter;
  if (name == "mix") drafter = std::make_unique<MixDrafter>(parts.saved);
  if (name == "ngram") drafter = std::make_unique<NgramDrafter>();
  if (name == "successor") drafter = std::make_unique<SuccessorDrafter>(parts.saved);
  if (name == "none") drafter = std::make_unique<NoDrafter>();
  return drafter;
}

}  // namespace sapwood
