// answer BUNDLE HOST MODE COUNT TOKEN...: the tokens that continue a prompt, by the C interface.
//
// Links the runtime and nothing else, so that what a host needs shows in `ldd` and in what it
// loads. Libraries are named in the environment (sapwood.h, sapwood_engine_options).
#include <sapwood/sapwood.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "c_api_example.h"

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("usage: answer BUNDLE HOST MODE COUNT TOKEN...\n", stderr);
    return 2;
  }
  const std::string mode_name = argv[3];
  int mode = SAPWOOD_PLAIN;
  while (mode < SAPWOOD_DYNAMIC && mode_name != sapwood_mode_name(mode)) ++mode;
  std::vector<int32_t> prompt;
  for (int i = 5; i < argc; ++i) prompt.push_back(std::atoi(argv[i]));
  std::vector<int32_t> answer(static_cast<size_t>(std::atoi(argv[4])));
  sapwood_stats stats;
  const int count =
      c_api_example(argv[1], argv[2], "mix", static_cast<sapwood_mode>(mode), SAPWOOD_TARGET_DRAW,
                    prompt.data(), prompt.size(), answer.data(), answer.size(), &stats);
  for (int i = 0; i < count; ++i) std::printf("%d\n", answer[i]);
  return count < 0 ? 2 : 0;
}
