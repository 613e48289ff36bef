// The drafters that need no model of their own, by name.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafter.h"

namespace sapwood {

// "mix" is the default; "none" never drafts, in any mode.
inline constexpr std::array<std::string_view, 4> kDrafterNames = {"mix", "ngram", "successor",
                                                                  "none"};

// kInvalidArgument for another name.
Result<std::unique_ptr<Drafter>> make_drafter(std::string_view name);

}  // namespace sapwood
