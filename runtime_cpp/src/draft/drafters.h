// The drafters that need no model of their own, by name.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafter.h"
#include "draft/ngram_table.h"

namespace sapwood {

// "mix" is the default; "none" never drafts, in any mode.
inline constexpr std::array<std::string_view, 4> kDrafterNames = {"mix", "ngram", "successor",
                                                                  "none"};

// saved: an n-gram table that "mix" and "successor" begin with; not used after the call.
// kInvalidArgument for another name, or for a table where there is no use for it.
Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name,
                                              const NgramTable* saved = nullptr);

}  // namespace sapwood
