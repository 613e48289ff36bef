// The native host: embedding, a loop over the layers, final norm and head, on our kernels alone.
// It maps the bundle's weights and needs no framework.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/bundle.h"
#include "model/model.h"

namespace sapwood {

struct NativeOptions {
  int threads = 1;
  int max_rows = 256;  // rows a pass takes at most; a longer prompt comes in chunks
};

// Keeps the bundle open for as long as the model lives.
Result<std::unique_ptr<Model>> open_native_model(std::shared_ptr<const Bundle> bundle,
                                                 const NativeOptions& options);

}  // namespace sapwood
