// The native host: embedding, a loop over the layers, final norm and head, on our kernels alone.
// It maps the bundle's weights and needs no framework.
#pragma once

#include <memory>

#include "base/status.h"
#include "base/thread_team.h"
#include "model/bundle.h"
#include "model/model.h"

namespace sapwood {

struct NativeOptions {
  int threads = 1;
  int max_rows = 256;  // rows a pass takes at most; a longer prompt comes in chunks
  int layers = 0;      // the first so many, under the same final norm and head; 0: all
  // Of another model (Model::team) that never runs at the same time, instead of `threads` of its
  // own: two teams that take turns wait for each other's spinning members.
  std::shared_ptr<ThreadTeam> team = nullptr;
};

// Keeps the bundle open for as long as the model lives.
Result<std::unique_ptr<Model>> open_native_model(std::shared_ptr<const Bundle> bundle,
                                                 const NativeOptions& options);

}  // namespace sapwood
