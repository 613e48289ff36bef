/* The worked example of sapwood.h, in C99: collects an answer and its statistics. Compiled as C so
 * that the header stays C; driven by c_api_test.cc. */
#include "c_api_example.h"

#include <stdio.h>

int c_api_example(const char* bundle, const char* host, const char* drafter, sapwood_mode mode,
                  sapwood_verifier verifier, const int32_t* prompt, size_t prompt_length,
                  int32_t* answer, size_t room, sapwood_stats* stats) {
  sapwood_engine_options engine_options;
  sapwood_session_options session_options;
  sapwood_engine* engine = NULL;
  sapwood_session* session = NULL;
  sapwood_generate_options options;
  sapwood_code code;
  size_t length = 0;

  sapwood_engine_options_init(&engine_options, sizeof(engine_options));
  engine_options.host = host;
  engine_options.threads = 1;
  if (sapwood_engine_open(bundle, &engine_options, &engine) != SAPWOOD_OK) {
    fprintf(stderr, "%s\n", sapwood_last_error());
    return -1;
  }
  sapwood_session_options_init(&session_options, sizeof(session_options));
  session_options.drafter = drafter;
  code = sapwood_session_create(engine, &session_options, &session);
  sapwood_engine_close(engine); /* the session keeps what it needs */

  sapwood_generate_options_init(&options, sizeof(options));
  options.mode = mode;
  options.verifier = verifier;
  options.max_new_tokens = (int32_t)room;
  options.temperature = 0.8f;
  options.seed = 7;
  options.ignore_eos = 1;
  if (code == SAPWOOD_OK) code = sapwood_session_start(session, prompt, prompt_length, &options);
  while (code == SAPWOOD_OK) {
    const int32_t* tokens;
    size_t count;
    size_t i;
    code = sapwood_session_step(session, &tokens, &count);
    if (code != SAPWOOD_OK || count == 0) break;
    for (i = 0; i < count; ++i) answer[length++] = tokens[i];
  }
  if (code == SAPWOOD_OK) {
    sapwood_stats_init(stats, sizeof(*stats));
    code = sapwood_session_stats(session, stats);
  }
  if (code != SAPWOOD_OK) fprintf(stderr, "%s\n", sapwood_last_error());
  sapwood_session_close(session);
  return code == SAPWOOD_OK ? (int)length : -1;
}
