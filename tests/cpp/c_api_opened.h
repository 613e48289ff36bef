// An engine and a session of it over a small made model, opened through the C interface.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "make_test_bundle.h"
#include "sapwood/sapwood.h"

namespace sapwood {

inline const std::string& opened_bundle() {
  static const std::string path = write_test_bundle(test_bundle_options("llama")).value();
  return path;
}

struct Opened {
  Opened() {
    EXPECT_EQ(sapwood_engine_open(opened_bundle().c_str(), nullptr, &engine), SAPWOOD_OK)
        << sapwood_last_error();
    EXPECT_EQ(sapwood_session_create(engine, nullptr, &session), SAPWOOD_OK)
        << sapwood_last_error();
  }
  ~Opened() {
    sapwood_session_close(session);
    sapwood_engine_close(engine);
  }
  sapwood_engine* engine = nullptr;
  sapwood_session* session = nullptr;
};

}  // namespace sapwood
