#include "kernels/linear.h"

#include <array>
#include <utility>

namespace sapwood {
namespace {

constexpr std::array<std::pair<std::string_view, LinearFormat>, 5> kFormats = {{
    {"int4_g32", {4, 32, false}},
    {"int4_g32_min", {4, 32, true}},
    {"int4_g128", {4, 128, false}},
    {"int4_g128_min", {4, 128, true}},
    {"int8_g32", {8, 32, false}},
}};

}  // namespace

std::optional<LinearFormat> parse_linear_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (known == name) return format;
  }
  return std::nullopt;
}

std::string_view linear_format_name(const LinearFormat& format) {
  for (const auto& [name, known] : kFormats) {
    if (known == format) return name;
  }
  return "unknown";
}

}  // namespace sapwood
