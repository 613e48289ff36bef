// What make_drafter needs for drafters that run a model, over the fake model.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafters.h"
#include "fake_model.h"

namespace sapwood {

// A drafting model of the same vocabulary that mostly has the same habits and its own mind beyond.
inline DrafterParts parts_of(std::string_view drafter, const Model& target) {
  DrafterParts parts;
  if (drafter_needs_model(drafter)) {
    parts.model = std::make_shared<FakeModel>(FakeModel::Options{
        .vocabulary = target.spec().vocabulary_size, .max_rows = 24, .habit = 9.f});
    parts.model_options.learn_costs = false;
    parts.model_options.cost =
        CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{0.02, 0.03});
  }
  return parts;
}

}  // namespace sapwood
