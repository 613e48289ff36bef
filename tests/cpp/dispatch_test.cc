// The kernels chosen are those the processor at hand allows. scripts/test_arm64 names the ones an
// emulated processor must get in SAPWOOD_EXPECTED_KERNELS.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/kernels.h"

namespace sapwood {
namespace {

TEST(KernelDispatch, ChoosesWhatThisProcessorIsExpectedToGet) {
  const char* expected = std::getenv("SAPWOOD_EXPECTED_KERNELS");
  if (expected == nullptr) GTEST_SKIP() << "SAPWOOD_EXPECTED_KERNELS is not set";
  EXPECT_EQ(expected, runnable_kernels().back()->name);
  EXPECT_EQ(expected, kernels().name);
}

TEST(KernelDispatch, RunsTheScalarTwinEverywhereAndEachTableOnce) {
  EXPECT_EQ("scalar", runnable_kernels().front()->name);
  const std::string chosen(kernels().name);
  for (const KernelTable* table : runnable_kernels()) {
    ASSERT_TRUE(set_kernels(table->name));
    EXPECT_EQ(table, &kernels()) << "two tables are called " << table->name;
  }
  ASSERT_TRUE(set_kernels(chosen));
  EXPECT_FALSE(set_kernels("abacus"));
  EXPECT_EQ(chosen, kernels().name);
}

}  // namespace
}  // namespace sapwood
