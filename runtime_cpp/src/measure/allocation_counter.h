// Counts what a stretch of code allocates.
//
//   const uint64_t before = allocations();
//   work();
//   EXPECT_EQ(allocations() - before, 0u);
//
// A program or module that calls one of these gets operators new and delete that count; others are
// linked without them.
#pragma once

#include <cstdint>

namespace sapwood {

// Calls of operator new so far, on all threads. Always 0 under a sanitizer, which brings its own
// allocator: see counts_allocations().
uint64_t allocations();
bool counts_allocations();

// This thread's allocation after so many more throws std::bad_alloc, once; -1: none does. Where
// allocations are counted.
void fail_allocation(int64_t after);
bool allocation_failed();  // it has thrown

}  // namespace sapwood
