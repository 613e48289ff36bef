// What the tests of sessions share: a session whose costs are known, and a whole answer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/session.h"

namespace sapwood {

using Text = std::vector<int32_t>;

inline GenerateOptions answer_options(Mode mode, int tokens, float temperature = 0) {
  GenerateOptions options;
  options.mode = mode;
  options.max_new_tokens = tokens;
  options.sampling = {.temperature = temperature, .seed = 4};
  return options;
}

// Rows are nearly as cheap as one, and stay so: equal runs draft equal trees.
inline std::unique_ptr<Session> session_of(std::shared_ptr<Model> target,
                                           std::unique_ptr<Drafter> drafter, int context = 400,
                                           SessionOptions options = {}) {
  options.context_length = context;
  options.drafter = std::move(drafter);
  options.measured_costs = {{64}, {1, 64}, {1.0, 1.2}};
  options.learn_costs = false;
  Result<std::unique_ptr<Session>> session = Session::create(std::move(target), std::move(options));
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(session).value();
}

// All tokens that a session emits from here on; an error fails the test and ends the answer.
inline Text rest_of_answer(Session& session) {
  Text text;
  for (;;) {
    const Result<std::span<const int32_t>> tokens = session.step();
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    if (!tokens.ok() || tokens.value().empty()) return text;
    text.insert(text.end(), tokens.value().begin(), tokens.value().end());
  }
}

inline Text answer(Session& session, const Text& prompt, const GenerateOptions& options) {
  const Status started = session.start(prompt, options);
  EXPECT_TRUE(started.ok()) << started.message();
  return rest_of_answer(session);
}

}  // namespace sapwood
