// What the tests of sessions share: a whole answer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "engine/session.h"

namespace sapwood {

using Text = std::vector<int32_t>;

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
