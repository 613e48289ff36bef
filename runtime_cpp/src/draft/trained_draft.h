// A draft that was trained for a target, opened: what sessions over that target make drafters of.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "draft/draft_network.h"
#include "model/bundle.h"
#include "model/draft_manifest.h"
#include "model/native.h"

namespace sapwood {

class TrainedDraft {
 public:
  virtual ~TrainedDraft() = default;

  // The drafter it is for by itself: "head" or "parallel-heads".
  virtual std::string_view drafter() const = 0;

  // Over the weights and scratch that all networks of this draft share: none of them, nor the
  // target whose threads they may run on, is used at the same time as another.
  virtual std::unique_ptr<DraftNetwork> make_network() const = 0;
};

// The draft in `folder`, checked (model/draft_folder.h) and fit for the target.
Result<std::shared_ptr<const TrainedDraft>> open_trained_draft(const std::string& folder,
                                                               std::shared_ptr<const Bundle> target,
                                                               const BundleOptions& checks,
                                                               const NativeOptions& options);

}  // namespace sapwood
