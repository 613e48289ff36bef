// What is told of times that were measured again and again.
#pragma once

#include <algorithm>
#include <vector>

namespace sapwood {

// The upper one of the two in the middle of an even number; 0 of none. Reorders them.
inline double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sapwood
