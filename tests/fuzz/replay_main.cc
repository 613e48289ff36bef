// Runs a fuzz target without libFuzzer: seeds, then mutants, the same ones every time.
//
//   bundle_fuzz_replay [MUTANTS]           default 20000
//   bundle_fuzz_replay --write-seeds DIR   files for libFuzzer to begin with
//   bundle_fuzz_replay FILE...             these inputs only: a crash that libFuzzer found
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "mutate.h"

namespace {

void run(const std::string& input) {
  // On the heap at its exact size, so that the address sanitizer sees one byte too many.
  const std::vector<uint8_t> copy(input.begin(), input.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

int write_seeds(const std::string& folder) {
  int count = 0;
  for (const std::string& seed : fuzz_seeds()) {
    std::ofstream file(folder + "/seed" + std::to_string(count++), std::ios::binary);
    file << seed;
    file.close();
    if (!file) {
      std::fprintf(stderr, "%s: cannot be written\n", folder.c_str());
      return 2;
    }
  }
  return 0;
}

int run_mutants(long mutants) {
  std::mt19937_64 random(1);
  std::vector<std::string> inputs = fuzz_seeds();
  for (const std::string& seed : inputs) run(seed);
  const size_t seeds = inputs.size();
  for (long i = 0; i < mutants; ++i) {
    // Half of the mutants come from mutants, so that changes add up.
    const std::string input = mutate(inputs[random() % inputs.size()], random);
    run(input);
    if (inputs.size() < 4 * seeds) {
      inputs.push_back(input);
    } else if (random() % 2 == 0) {
      inputs[seeds + random() % (inputs.size() - seeds)] = input;
    }
  }
  std::printf("%zu seeds and %ld mutants passed\n", seeds, mutants);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write-seeds") == 0) return write_seeds(argv[2]);
  if (argc == 1) return run_mutants(20000);
  char* end = nullptr;
  const long mutants = std::strtol(argv[1], &end, 10);
  if (argc == 2 && *end == '\0') return run_mutants(mutants);
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    run({std::istreambuf_iterator<char>(file), {}});
  }
  return 0;
}
