#include "mutate.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace {

using nlohmann::json;
using Random = std::mt19937_64;

size_t below(Random& random, size_t limit) { return limit == 0 ? 0 : random() % limit; }

json hostile_value(Random& random) {
  static const std::vector<json> values = {
      nullptr,
      true,
      false,
      0,
      -1,
      1,
      15,
      16,
      31,
      33,
      63,
      64,
      127,
      4096,
      INT32_MAX,
      INT32_MIN,
      int64_t{INT32_MAX} + 1,
      int64_t{UINT32_MAX} + 1,
      INT64_MAX,
      INT64_MIN,
      UINT64_MAX,
      UINT64_MAX - 63,
      uint64_t{1} << 46,
      0.5,
      -0.0,
      1e308,
      -1e-320,
      "",
      "x",
      "..",
      "/etc/passwd",
      "manifest.json",
      "target.weights",
      "float32",
      "int8_g32",
      "int4_g128_min",
      std::string(300, 'a'),
      std::string("\0\n\x1b[2J", 6),
      "\xf0\x9f\x8c\xb3",
      json::array(),
      json::object(),
      {1, 2},
      {true, false},
      json::array({json::array({json::array()})}),
  };
  return values[below(random, values.size())];
}

// Every value inside, the root included.
void collect(json& value, std::vector<json*>* nodes) {
  nodes->push_back(&value);
  if (!value.is_structured()) return;
  for (json& child : value) collect(child, nodes);
}

void nudge(json& value, Random& random) {
  if (value.is_number_integer()) {
    const uint64_t bits = value.is_number_unsigned() ? value.get<uint64_t>()
                                                     : static_cast<uint64_t>(value.get<int64_t>());
    const uint64_t steps[] = {bits + 1, bits - 1,  bits * 2,
                              bits / 2, bits + 64, bits ^ (1ull << 63)};
    value = static_cast<int64_t>(steps[below(random, std::size(steps))]);
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (value.is_string()) {
    std::string text = value.get<std::string>();
    if (text.empty() || below(random, 2) == 0)
      text += static_cast<char>('a' + below(random, 26));
    else
      text.erase(below(random, text.size()), 1);
    // An erased byte may have been a part of a character: dump() would refuse it.
    value =
        json(text).dump(-1, ' ', true, json::error_handler_t::ignore).size() > 2 ? json(text) : "";
  } else {
    value = hostile_value(random);
  }
}

void change_one_value(json& root, Random& random) {
  std::vector<json*> nodes;
  collect(root, &nodes);
  json& chosen = *nodes[below(random, nodes.size())];
  const json other = *nodes[below(random, nodes.size())];
  switch (below(random, 6)) {
    case 0:
      chosen = hostile_value(random);
      break;
    case 1:
      nudge(chosen, random);
      break;
    case 2:
      chosen = other;
      break;
    case 3:  // remove a member
      if (!chosen.is_structured() || chosen.empty()) return nudge(chosen, random);
      chosen.erase(std::next(chosen.begin(), static_cast<long>(below(random, chosen.size()))));
      break;
    case 4:  // add one
      if (chosen.is_array())
        chosen.push_back(other);
      else if (chosen.is_object())
        chosen["layers." + std::to_string(below(random, 9)) + ".qkv"] = other;
      else
        nudge(chosen, random);
      break;
    default:  // give one member's value to another
      if (!chosen.is_structured() || chosen.empty()) return nudge(chosen, random);
      *std::next(chosen.begin(), static_cast<long>(below(random, chosen.size()))) = other;
  }
}

void change_bytes(std::string& text, Random& random) {
  if (text.empty()) {
    text += static_cast<char>(random());
    return;
  }
  const size_t at = below(random, text.size());
  const size_t length = std::min(text.size() - at, 1 + below(random, 64));
  switch (below(random, 6)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << below(random, 8)));
      break;
    case 1:
      text[at] = static_cast<char>(random());
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, text.substr(below(random, text.size()), length));
      break;
    case 4:
      text.resize(at);
      break;
    default:
      text.insert(at, 1 + below(random, 8), "[{\"0-e\\"[below(random, 7)]);
  }
}

}  // namespace

std::string mutate(std::string_view input, Random& random) {
  const size_t changes = 1 + below(random, 3);
  json root = below(random, 4) == 0 ? json(json::value_t::discarded)
                                    : json::parse(input, nullptr, /*allow_exceptions=*/false);
  if (root.is_structured()) {
    for (size_t i = 0; i < changes; ++i) change_one_value(root, random);
    return root.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  std::string text(input);
  for (size_t i = 0; i < changes; ++i) change_bytes(text, random);
  return text;
}
