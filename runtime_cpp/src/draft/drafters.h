// Drafters by name.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafter.h"
#include "draft/model_drafter.h"
#include "draft/ngram_table.h"
#include "draft/trained_draft.h"

namespace sapwood {

// "mix" is the default; "none" never drafts, in any mode. "model" and "early-exit" run a model:
// another bundle's, or the target's first layers. "head" and "parallel-heads" run a draft that was
// trained for the target. "cascade" runs any of these behind a mix.
inline constexpr std::array<std::string_view, 9> kDrafterNames = {
    "mix",        "ngram", "successor",      "none",   "model",
    "early-exit", "head",  "parallel-heads", "cascade"};

bool drafter_needs_model(std::string_view name);  // or, for a cascade, a trained draft
bool drafter_needs_draft(std::string_view name);  // a trained one

// What a drafter is made of, beside what it learns.
struct DrafterParts {
  // An n-gram table that "mix", "successor" and "cascade" begin with; not used after the call.
  const NgramTable* saved = nullptr;
  std::shared_ptr<Model> model = nullptr;               // model/draft_model.h opens them
  std::shared_ptr<const TrainedDraft> draft = nullptr;  // instead of a model
  ModelDrafterOptions model_options = {};
};

// kInvalidArgument for another name, a part that there is no use for, or a model that is missing.
Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name,
                                              const DrafterParts& parts = {});

}  // namespace sapwood
