#include "draft/drafters.h"

#include <algorithm>
#include <string>
#include <utility>

#include "draft/mix_drafter.h"
#include "draft/model_network.h"
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

bool drafter_needs_draft(std::string_view name) {
  return name == "head" || name == "parallel-heads";
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
  const bool takes_model = drafter_needs_model(name);
  const bool takes_draft = drafter_needs_draft(name) || name == "cascade";
  if (parts.model != nullptr && !takes_model) {
    return refuse(name, "runs no model; model, early-exit and cascade do");
  }
  if (parts.draft != nullptr && !takes_draft) {
    return refuse(name, "runs no trained draft; head, parallel-heads and cascade do");
  }
  if (takes_model || takes_draft) {
    if (parts.model == nullptr && parts.draft == nullptr) {
      return refuse(name, takes_model ? "needs a model that drafts; give it one"
                                      : "needs a draft that was trained for the target; name one");
    }
    if (parts.model != nullptr && parts.draft != nullptr) {
      return refuse(name, "runs a model or a trained draft, not both");
    }
    if (drafter_needs_draft(name) && parts.draft->drafter() != name) {
      return refuse(name, "was given a draft for the drafter " +
                              std::string(parts.draft->drafter()) + "; choose that one");
    }
    std::unique_ptr<DraftNetwork> network = parts.draft != nullptr
                                                ? parts.draft->make_network()
                                                : std::make_unique<ModelNetwork>(parts.model);
    // Names in the list live as long as the program.
    std::unique_ptr<Drafter> first;
    if (name == "cascade") first = std::make_unique<MixDrafter>(parts.saved);
    return std::unique_ptr<Drafter>(std::make_unique<ModelDrafter>(
        *known, std::move(network), parts.model_options, std::move(first)));
  }
  std::unique_ptr<Drafter> drafter;
  if (name == "mix") drafter = std::make_unique<MixDrafter>(parts.saved);
  if (name == "ngram") drafter = std::make_unique<NgramDrafter>();
  if (name == "successor") drafter = std::make_unique<SuccessorDrafter>(parts.saved);
  if (name == "none") drafter = std::make_unique<NoDrafter>();
  return drafter;
}

}  // namespace sapwood
