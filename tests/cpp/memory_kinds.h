// What the tests of shared memory have in common.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/memory_kind.h"

namespace sapwood {

// Why tests of `kind` cannot run on this machine; empty if they can. A kind named in
// SAPWOOD_EXPECTED_MEMORY (comma-separated; scripts/test_vm sets it) always can, or they fail.
std::string why_skip(MemoryKind kind);

// Of this process.
int open_descriptors();

// A name for INSTANTIATE_TEST_SUITE_P.
inline std::string kind_test_name(const ::testing::TestParamInfo<MemoryKind>& info) {
  return memory_kind_name(info.param);
}

inline std::vector<MemoryKind> all_creatable_kinds() {
  return {creatable_memory_kinds().begin(), creatable_memory_kinds().end()};
}

#define SAPWOOD_SKIP_WITHOUT(kind)                                                 \
  do {                                                                             \
    if (const std::string why = why_skip(kind); !why.empty()) GTEST_SKIP() << why; \
  } while (false)

}  // namespace sapwood
