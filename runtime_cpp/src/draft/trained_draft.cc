#include "draft/trained_draft.h"

#include <utility>

#include "draft/head_network.h"
#include "draft/parallel_network.h"

namespace sapwood {
namespace {

template <typename Heads, typename Network>
class Opened final : public TrainedDraft {
 public:
  Opened(std::string_view drafter, std::shared_ptr<Heads> heads)
      : drafter_(drafter), heads_(std::move(heads)) {}
  std::string_view drafter() const override { return drafter_; }
  std::unique_ptr<DraftNetwork> make_network() const override {
    return std::make_unique<Network>(heads_);
  }

 private:
  const std::string_view drafter_;
  const std::shared_ptr<Heads> heads_;
};

template <typename Heads, typename Network>
Result<std::shared_ptr<const TrainedDraft>> open_as(std::string_view drafter, DraftFolder folder,
                                                    std::shared_ptr<const Bundle> target,
                                                    const NativeOptions& options) {
  Result<std::unique_ptr<Heads>> heads = Heads::open(
      std::make_shared<const DraftFolder>(std::move(folder)), std::move(target), options);
  if (!heads.ok()) return heads.status();
  return std::shared_ptr<const TrainedDraft>(
      std::make_shared<Opened<Heads, Network>>(drafter, std::move(heads).value()));
}

}  // namespace

Result<std::shared_ptr<const TrainedDraft>> open_trained_draft(const std::string& folder,
                                                               std::shared_ptr<const Bundle> target,
                                                               const BundleOptions& checks,
                                                               const NativeOptions& options) {
  Result<DraftFolder> opened = DraftFolder::open(folder, checks);
  if (!opened.ok()) return opened.status();
  SAPWOOD_TRY(check_fits(opened.value(), *target));
  if (opened->manifest().kind == DraftKind::kHead) {
    return open_as<DraftHead, HeadNetwork>("head", std::move(opened).value(), std::move(target),
                                           options);
  }
  return open_as<ParallelHeads, ParallelNetwork>("parallel-heads", std::move(opened).value(),
                                                 std::move(target), options);
}

}  // namespace sapwood
