// Models that draft for a target: another bundle with the same vocabulary, or the target's own
// first layers.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/bundle.h"
#include "model/native.h"

namespace sapwood {

// A token id must mean the same to both. kInvalidArgument naming the bundle that does not fit and
// what differs: the size of the vocabulary, or a token. Tokenizers that are the same file are not
// compared further; others by their tokens and ids, whatever else in them differs.
Status check_same_vocabulary(const Bundle& target, const Bundle& draft);

// The draft bundle's target model, on the native host, after check_same_vocabulary.
Result<std::unique_ptr<Model>> open_draft_model(const Bundle& target,
                                                std::shared_ptr<const Bundle> draft,
                                                const NativeOptions& options);

// The first layers of the target with its final norm and head, as many as the bundle's early exit
// has, over the same mapped weights. kNotFound for a bundle that was exported without one.
Result<std::unique_ptr<Model>> open_early_exit(std::shared_ptr<const Bundle> target,
                                               NativeOptions options);

}  // namespace sapwood
