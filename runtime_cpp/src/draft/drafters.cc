#include "draft/drafters.h"

#include <string>

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

}  // namespace

Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name, const NgramTable* saved) {
  std::unique_ptr<Drafter> drafter;
  if (saved != nullptr && (name == "ngram" || name == "none")) {
    return Status(Code::kInvalidArgument, "the drafter " + std::string(name) +
                                              " uses no saved n-gram table; mix and successor do");
  }
  if (name == "mix") drafter = std::make_unique<MixDrafter>(saved);
  if (name == "ngram") drafter = std::make_unique<NgramDrafter>();
  if (name == "successor") drafter = std::make_unique<SuccessorDrafter>(saved);
  if (name == "none") drafter = std::make_unique<NoDrafter>();
  if (drafter == nullptr) {
    return Status(Code::kInvalidArgument, "drafter must be mix, ngram, successor or none, not \"" +
                                              std::string(name) + '"');
  }
  return drafter;
}

}  // namespace sapwood
