// How a session speculates. The text is the same in every mode.
#pragma once

#include <optional>
#include <string_view>

namespace sapwood {

enum class Mode {
  kPlain,    // one token a step
  kChain,    // a single line of guesses of fixed length
  kFixed,    // a tree of fixed shape
  kDynamic,  // a tree grown to what pays on this device at this moment, down to none at all
};

std::optional<Mode> parse_mode(std::string_view name);  // "plain", "chain", "fixed", "dynamic"
std::string_view mode_name(Mode mode);

}  // namespace sapwood
