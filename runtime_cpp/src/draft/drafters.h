// Drafters by name.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafter.h"
#include "draft/model_drafter.h"
#include "draft/ngram_table.h"

namespace sapwood {

// "mix" is the default; "none" never drafts, in any mode. The last three run a model: another
// bundle's, the target's first layers, or either behind a mix.
inline constexpr std::array<std::string_view, 7> kDrafterNames = {
    "mix", "ngram", "successor", "none", "model", "early-exit", "cascade"};

bool drafter_needs_model(std::string_view name);

// What a drafter is made of, beside what it learns.
struct DrafterParts {
  // An n-gram table that "mix", "successor" and "cascade" begin with; not used after the call.
  const NgramTable* saved = nullptr;
  std::shared_ptr<Model> model = nullptr;  // model/draft_model.h opens them
  ModelDrafterOptions model_options = {};
};

// kInvalidArgument for another name, a part that there is no use for, or a model that is missing.
Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name,
                                              const DrafterParts& parts = {});

}  // namespace sapwood
