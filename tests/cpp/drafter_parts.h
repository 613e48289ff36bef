// What make_drafter needs for drafters that run a model or a trained draft, over the fake model.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "draft/drafters.h"
#include "fake_draft.h"
#include "fake_model.h"

namespace sapwood {

// A drafting model of the same vocabulary that mostly has the same habits and its own mind beyond.
inline DrafterParts parts_of(std::string_view drafter, const Model& target) {
  DrafterParts parts;
  const int vocabulary = target.spec().vocabulary_size;
  if (drafter_needs_model(drafter)) {
    parts.model = std::make_shared<FakeModel>(
        FakeModel::Options{.vocabulary = vocabulary, .max_rows = 24, .habit = 9.f});
  }
  if (drafter_needs_draft(drafter)) {
    parts.draft =
        std::make_shared<FakeDraft>(FakeDraft::Options{.vocabulary = vocabulary}, drafter);
  }
  if (parts.model != nullptr || parts.draft != nullptr) {
    parts.model_options.learn_costs = false;
    parts.model_options.cost =
        CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{0.02, 0.03});
  }
  return parts;
}

}  // namespace sapwood
