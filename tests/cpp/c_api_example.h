/* See c_api_example.c. */
#ifndef SAPWOOD_C_API_EXAMPLE_H
#define SAPWOOD_C_API_EXAMPLE_H

#include "sapwood/sapwood.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes at most `room` tokens to `answer` and returns how many, or -1 after printing why. */
int c_api_example(const char* bundle, const char* host, const char* drafter, sapwood_mode mode,
                  sapwood_verifier verifier, const int32_t* prompt, size_t prompt_length,
                  int32_t* answer, size_t room, sapwood_stats* stats);

#ifdef __cplusplus
}
#endif

#endif
