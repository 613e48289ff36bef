#include "engine/mode.h"

#include <array>
#include <utility>

namespace sapwood {
namespace {

constexpr std::array<std::pair<Mode, std::string_view>, 4> kNames = {{{Mode::kPlain, "plain"},
                                                                      {Mode::kChain, "chain"},
                                                                      {Mode::kFixed, "fixed"},
                                                                      {Mode::kDynamic, "dynamic"}}};

}  // namespace

std::optional<Mode> parse_mode(std::string_view name) {
  for (const auto& [mode, known] : kNames) {
    if (known == name) return mode;
  }
  return std::nullopt;
}

std::string_view mode_name(Mode mode) {
  for (const auto& [known, name] : kNames) {
    if (known == mode) return name;
  }
  return "unknown";
}

}  // namespace sapwood
