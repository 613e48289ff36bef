// What a fuzz target is: a file tests/fuzz/<name>_fuzz.cc that defines both functions below.
//
// Each is built twice. <name>_fuzz_replay is an ordinary test on any compiler: the seeds, then a
// fixed number of mutations of them. <name>_fuzz is libFuzzer's (clang, preset "fuzz"), to be left
// running: <name>_fuzz_replay --write-seeds DIR && <name>_fuzz DIR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Valid inputs to begin with, made on the spot.
std::vector<std::string> fuzz_seeds();

// Runs one input; ends the process (abort, or a sanitizer's report) if a promise is broken.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
