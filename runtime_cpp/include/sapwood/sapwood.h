/* Sapwood's C interface: open a bundle, give it token ids, pull the tokens it answers with.
 *
 * A worked example, which prints the answer's ids step by step:
 *
 *   sapwood_engine* engine = NULL;
 *   if (sapwood_engine_open("bundles/smollm2-135m", NULL, &engine) != SAPWOOD_OK) {
 *     fprintf(stderr, "%s\n", sapwood_last_error());
 *     return 2;
 *   }
 *   sapwood_session* session = NULL;
 *   sapwood_session_create(engine, NULL, &session);
 *
 *   sapwood_generate_options options;
 *   sapwood_generate_options_init(&options, sizeof(options));
 *   options.max_new_tokens = 64;
 *   options.temperature = 0.8f;
 *   options.seed = 7;
 *   const int32_t prompt[] = {1, 4093, 198};
 *   sapwood_code code = sapwood_session_start(session, prompt, 3, &options);
 *   while (code == SAPWOOD_OK) {
 *     const int32_t* tokens;
 *     size_t count;
 *     code = sapwood_session_step(session, &tokens, &count);
 *     if (code != SAPWOOD_OK || count == 0) break;
 *     for (size_t i = 0; i < count; ++i) printf("%d ", tokens[i]);
 *   }
 *   if (code != SAPWOOD_OK) fprintf(stderr, "%s\n", sapwood_last_error());
 *
 *   sapwood_stats stats;
 *   sapwood_stats_init(&stats, sizeof(stats));
 *   sapwood_session_stats(session, &stats);
 *   printf("%d tokens in %lld steps\n", stats.emitted_tokens, (long long)stats.steps);
 *   sapwood_session_close(session);
 *   sapwood_engine_close(engine);
 *
 * Rules. Every function that can fail returns a sapwood_code and, on failure, leaves a line for a
 * person in sapwood_last_error(); no C++ exception leaves the library. Structures are filled by
 * their _init function, which is given their size and keeps it, so that a program built against an
 * older header goes on working with a newer library: nothing is read or written beyond that size.
 * An engine's sessions share its model: use one of them at a time. A session keeps the model alive,
 * so the two may be closed in either order. Nothing but sapwood_session_cancel may be called on an
 * object while another thread is inside a call on it.
 */
#ifndef SAPWOOD_SAPWOOD_H
#define SAPWOOD_SAPWOOD_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAPWOOD_API __attribute__((visibility("default")))
#else
#define SAPWOOD_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sapwood_code {
  SAPWOOD_OK = 0,
  SAPWOOD_INVALID_ARGUMENT = 1, /* an option, a prompt that is too long, a null pointer */
  SAPWOOD_NOT_FOUND = 2,        /* a file or an entry that should be there is not */
  SAPWOOD_CORRUPT = 3,          /* a file says something that cannot be true */
  SAPWOOD_UNSUPPORTED = 4,      /* well formed, but not for this build or machine */
  SAPWOOD_EXHAUSTED = 5,        /* no memory, no slot left */
  SAPWOOD_CANCELLED = 6,        /* sapwood_session_cancel while the prompt was read */
  SAPWOOD_INTERNAL = 7          /* a bug of the library */
} sapwood_code;

typedef enum sapwood_mode {
  SAPWOOD_PLAIN = 0,  /* one token a step */
  SAPWOOD_CHAIN = 1,  /* a line of guesses of fixed length */
  SAPWOOD_FIXED = 2,  /* a tree of guesses of fixed shape */
  SAPWOOD_DYNAMIC = 3 /* a tree as large as it pays here and now */
} sapwood_mode;

typedef enum sapwood_verifier {
  SAPWOOD_TARGET_DRAW = 0, /* draws from the target: the text at a seed is plain decoding's */
  SAPWOOD_REJECTION = 1, /* these three judge drafts that are drawn themselves. The text has the */
  SAPWOOD_BLOCK = 2,     /* same law, but which text comes at a seed depends on the drafts. Block */
  SAPWOOD_TRAVERSAL = 3  /* is for chains: SAPWOOD_CHAIN, SAPWOOD_DYNAMIC. Greedy: all alike. */
} sapwood_verifier;

typedef enum sapwood_length_rule {
  SAPWOOD_LENGTH_BY_WINDOW = 0, /* how many guesses came true lately */
  SAPWOOD_LENGTH_BY_ENTROPY = 1 /* how certain the draft is */
} sapwood_length_rule;

typedef enum sapwood_stop_reason {
  SAPWOOD_STOP_NONE = 0,     /* still going, or never started */
  SAPWOOD_STOP_EOS = 1,      /* an end-of-sequence token was emitted */
  SAPWOOD_STOP_LENGTH = 2,   /* max_new_tokens were emitted */
  SAPWOOD_STOP_CONTEXT = 3,  /* prompt and answer fill the context */
  SAPWOOD_STOP_STOPPED = 4,  /* sapwood_session_finish_at */
  SAPWOOD_STOP_CANCELLED = 5 /* sapwood_session_cancel */
} sapwood_stop_reason;

/* What the governor makes of a device's heat and power; the text is the same in every state. */
typedef enum sapwood_heat {
  SAPWOOD_COOL = 0,    /* speculation as asked */
  SAPWOOD_WARM = 1,    /* above 45 C or the power budget: beta + 0.1 */
  SAPWOOD_HOT = 2,     /* above 50 C: beta + 0.2, half as many guesses */
  SAPWOOD_CRITICAL = 3 /* above 55 C: no guesses */
} sapwood_heat;

typedef enum sapwood_memory_pressure {
  SAPWOOD_MEMORY_ENOUGH = 0,
  SAPWOOD_MEMORY_LOW = 1,     /* half as many guesses */
  SAPWOOD_MEMORY_CRITICAL = 2 /* a line of so few */
} sapwood_memory_pressure;

/* Why less is drafted than was asked for, or as much again. */
typedef enum sapwood_reason {
  SAPWOOD_REASON_NONE = 0, /* nothing has changed */
  SAPWOOD_REASON_TEMPERATURE = 1,
  SAPWOOD_REASON_POWER = 2,          /* above the budget */
  SAPWOOD_REASON_THERMAL_STATUS = 3, /* the platform's own word */
  SAPWOOD_REASON_MEMORY_PRESSURE = 4,
  SAPWOOD_REASON_RECOVERED = 5,       /* heat or memory pressure has eased */
  SAPWOOD_REASON_ACCEPTED_LENGTH = 6, /* steps emit too few tokens */
  SAPWOOD_REASON_LATENCY = 7,         /* tokens take longer than the target */
  SAPWOOD_REASON_NOT_FASTER = 8,      /* what was tried */
  SAPWOOD_REASON_COMPARED_AGAIN = 9,  /* what is used in place of what was asked for, with that */
  SAPWOOD_REASON_GUESSES_FAILED = 10, /* several steps in a row accepted nothing */
  SAPWOOD_REASON_DEADLINE = 11        /* a stage hung, or a draft failed */
} sapwood_reason;

/* What a step drafts in place of what its mode asks for. */
typedef enum sapwood_strategy {
  SAPWOOD_STRATEGY_AS_ASKED = 0,
  SAPWOOD_STRATEGY_GREEDY_TREE = 1, /* best first, as far as it pays */
  SAPWOOD_STRATEGY_NARROW = 2,      /* half as wide, with half as many nodes */
  SAPWOOD_STRATEGY_CHAIN = 3,
  SAPWOOD_STRATEGY_PLAIN = 4 /* nothing */
} sapwood_strategy;

typedef enum sapwood_trace_kind {
  SAPWOOD_TRACE_STAGE = 0,   /* has a duration, and arguments: step, rows, accepted, mode */
  SAPWOOD_TRACE_COUNTER = 1, /* has a value */
  SAPWOOD_TRACE_INSTANT = 2  /* something changed */
} sapwood_trace_kind;

typedef struct sapwood_engine sapwood_engine;   /* a bundle and the host that runs it */
typedef struct sapwood_session sapwood_session; /* one conversation */

/* "0.1.0". */
SAPWOOD_API const char* sapwood_version(void);

/* Why this thread's latest failing call failed, one line; "" if none has. Valid until the thread's
 * next failing call. */
SAPWOOD_API const char* sapwood_last_error(void);

/* "plain", ..., "target_draw", ..., "eos", ... and "cool", ...; "unknown" outside the enumerations.
 */
SAPWOOD_API const char* sapwood_mode_name(int32_t mode);
SAPWOOD_API const char* sapwood_verifier_name(int32_t verifier);
SAPWOOD_API const char* sapwood_stop_reason_name(int32_t reason);
SAPWOOD_API const char* sapwood_heat_name(int32_t heat);
SAPWOOD_API const char* sapwood_memory_pressure_name(int32_t pressure); /* "none", "low", ... */
SAPWOOD_API const char* sapwood_strategy_name(
    int32_t strategy);                                       /* "as asked", "greedy tree", ... */
SAPWOOD_API const char* sapwood_reason_name(int32_t reason); /* in words; "" for none */

/* ---- engine ---- */

typedef struct sapwood_engine_options {
  size_t size;                     /* set by sapwood_engine_options_init */
  const char* host;                /* "native" (default), "onnxruntime" or "executorch" */
  int32_t threads;                 /* 0 (default): one for each processor, at most 4 */
  int32_t verify_checksums;        /* 1 (default): read the whole bundle and compare */
  const char* onnxruntime_library; /* NULL (default): SAPWOOD_ONNXRUNTIME_LIBRARY or the system's */
  /* libsapwood_executorch.so, and the folder that libexecutorch.so lies in. NULL (default):
   * SAPWOOD_EXECUTORCH_LIBRARY and SAPWOOD_EXECUTORCH_RUNTIME, or the system's. */
  const char* executorch_library;
  const char* executorch_runtime;
} sapwood_engine_options;
SAPWOOD_API void sapwood_engine_options_init(sapwood_engine_options* options, size_t size);

/* Opens the bundle in a folder. options may be NULL. On failure *engine is NULL. */
SAPWOOD_API sapwood_code sapwood_engine_open(const char* bundle,
                                             const sapwood_engine_options* options,
                                             sapwood_engine** engine);
SAPWOOD_API void sapwood_engine_close(sapwood_engine* engine); /* NULL is allowed */

SAPWOOD_API const char* sapwood_engine_host(const sapwood_engine* engine);
SAPWOOD_API int32_t sapwood_engine_vocabulary_size(const sapwood_engine* engine);
SAPWOOD_API int32_t sapwood_engine_context_length(const sapwood_engine* engine);

/* ---- session ---- */

typedef struct sapwood_session_options {
  size_t size;            /* set by sapwood_session_options_init */
  int32_t context_length; /* prompt and answer together; 0 (default): what the bundle proposes */
  int32_t max_tree_nodes; /* guesses verified a step, at most 256 (default 31) */
  /* What guesses: "mix" (NULL), "ngram", "successor", "none", "model", "early-exit", "head",
   * "parallel-heads", "cascade". It lives as long as the session: what it learns from one answer
   * helps the next. */
  const char* drafter;
  const char* ngram_table;    /* to begin with: a file of `sapwood ngram build`, or the
                               * survey that `sapwood tune` wrote; NULL: nothing */
  const char* draft_bundle;   /* a bundle (model, cascade), or a draft that was trained for the
                               * target (head, parallel-heads, cascade); NULL: the early exit */
  const char* measured_costs; /* the file that `sapwood tune` wrote for this bundle, host, threads
                               * and machine; NULL: costs are learned from the session's steps */
  const char* kv; /* the KV cache: "float16" (NULL, default) or "int8": half the memory and faster
                   * over long contexts, other rounding; on the host "native" only */
  int32_t share_prefixes; /* 1 (default): what the KV cache has room for keeps earlier texts, of
                           * this session and of the engine's latest closed one; a prompt that
                           * begins like one of them is computed only from where it parts ways, and
                           * the answer is the same. 0: nothing outlives the next start */
  int32_t kv_slots; /* of the KV cache, one a token: how much is kept; 0 (default): just what the
                     * context and a step's guesses need */
  double least_deadline; /* in seconds, default 1: no stage of a step is given less before it counts
                          * as hanging (see sapwood_stats.watchdog); 0: there are no deadlines */
  int32_t draft_threads; /* 0 (default): what drafts runs on the engine's threads, by turns; above:
                          * a network that drafts runs on so many of its own, may look ahead while
                          * the engine's verify, and is left behind if it hangs */
  const char* double_buffer; /* whether it does look ahead: "measured" (NULL, default: where that
                              * turns out to be faster), "on" or "off"; same tokens */
} sapwood_session_options;
SAPWOOD_API void sapwood_session_options_init(sapwood_session_options* options, size_t size);

/* options may be NULL. On failure *session is NULL. */
SAPWOOD_API sapwood_code sapwood_session_create(sapwood_engine* engine,
                                                const sapwood_session_options* options,
                                                sapwood_session** session);
SAPWOOD_API void sapwood_session_close(sapwood_session* session); /* NULL is allowed */

typedef struct sapwood_generate_options {
  size_t size;               /* set by sapwood_generate_options_init */
  int32_t mode;              /* a sapwood_mode, default SAPWOOD_DYNAMIC; see sapwood_verifier */
  int32_t max_new_tokens;    /* default 128; drafts do not count */
  float temperature;         /* default 0: greedy */
  int32_t top_k;             /* default 0: off */
  float top_p;               /* default 1: off */
  float min_p;               /* default 0: off */
  float repetition_penalty;  /* default 1: off */
  uint64_t seed;             /* default 0 */
  int32_t ignore_eos;        /* 1: go on after end-of-sequence tokens; default 0 */
  const int32_t* eos_tokens; /* default NULL: the ones the bundle declares */
  size_t eos_token_count;
  int32_t chain_length; /* SAPWOOD_CHAIN, default 4 */
  int32_t fixed_nodes;  /* SAPWOOD_FIXED, default 15 */
  int32_t verifier;     /* a sapwood_verifier, default SAPWOOD_TARGET_DRAW */
  int32_t adapt;        /* 1: chain and fixed fall back where guesses fail, chains take their length
                         * by the rule below, beta follows the length of the steps; default 0 */
  int32_t length_rule;  /* a sapwood_length_rule, default SAPWOOD_LENGTH_BY_WINDOW */
  float beta;           /* share pruned of a draft's law where it is certain, default 0.3 */
  /* Where steps emit fewer tokens than the first (1.5 is usual), a chain and plain decoding are
   * tried; where tokens take longer than the second, in milliseconds, a greedy tree is, in place of
   * a chain or a fixed tree. What turns out to be faster is kept, and compared again now and then.
   * Default 0: never. */
  float least_accepted_length;
  float target_milliseconds;
} sapwood_generate_options;
SAPWOOD_API void sapwood_generate_options_init(sapwood_generate_options* options, size_t size);

/* Begins as suits what a prompt asks for: sets chain_length, fixed_nodes and beta of options that
 * sapwood_generate_options_init has filled. profile: "structure", "reasoning", "creativity" or
 * "knowledge", or "auto": which of these is told from the prompt's text (prompt_bytes of UTF-8,
 * what the system says before what the person does, no chat template), in microseconds; "off":
 * nothing is set. *scenario, which may be NULL: the one it was, "" for "off" or where none is
 * certain enough. */
SAPWOOD_API sapwood_code sapwood_generate_options_profile(sapwood_generate_options* options,
                                                          const char* profile, const char* prompt,
                                                          size_t prompt_bytes,
                                                          const char** scenario);

/* Takes a whole prompt, with any beginning-of-sequence token, and fills the cache with it; the
 * prefix it shares with a text that the cache keeps is not computed again. options may be NULL. A
 * refused call leaves the session as it was. */
SAPWOOD_API sapwood_code sapwood_session_start(sapwood_session* session, const int32_t* prompt,
                                               size_t prompt_length,
                                               const sapwood_generate_options* options);

/* One step: *tokens points to the *count tokens it emitted, valid until the next call on the
 * session. *count is 0 once the answer has ended. */
SAPWOOD_API sapwood_code sapwood_session_step(sapwood_session* session, const int32_t** tokens,
                                              size_t* count);

/* Ends the answer after its first `emitted` tokens, as if it had stopped there: for a stop string
 * found among a step's tokens. */
SAPWOOD_API sapwood_code sapwood_session_finish_at(sapwood_session* session, int32_t emitted);

/* From any thread: the next step ends the answer, a running start returns SAPWOOD_CANCELLED. */
SAPWOOD_API void sapwood_session_cancel(sapwood_session* session);

SAPWOOD_API sapwood_stop_reason sapwood_session_stop_reason(const sapwood_session* session);

typedef struct sapwood_stats {
  size_t size;  /* set by sapwood_stats_init */
  int32_t mode; /* a sapwood_mode */
  int32_t prompt_tokens;
  int32_t reused_prompt_tokens; /* of these, already in the cache: not computed again */
  int32_t emitted_tokens;
  int64_t steps;         /* verify passes that emitted something */
  int64_t rows_verified; /* over all steps */
  int64_t drafted_tokens;
  int64_t accepted_tokens;
  int32_t peak_kv_slots;
  double prefill_seconds;
  double decode_seconds;
  double draft_seconds;        /* part of decode_seconds */
  double mean_accepted_length; /* emitted tokens a step */
  double tokens_per_second;
  double prompt_tokens_per_second;
  int32_t verifier;          /* a sapwood_verifier */
  int32_t peak_draft_slots;  /* the most KV slots that a step held beyond the text */
  double mean_draft_slots;   /* of a step */
  double beta;               /* where the controller is by now */
  int64_t soft_fallbacks;    /* steps that drafted a chain because the one before failed */
  int64_t hard_fallbacks;    /* cool-downs without drafting */
  int32_t tuned_costs;       /* 1: the budget began with measured_costs */
  int64_t missed_deadlines;  /* of a step's stages, and drafts that failed: the text is right, but
                              * less is drafted, for a while or from then on */
  double hidden_draft_share; /* of the time for drafting that was of use, with draft_threads: what
                              * passed while the target verified */
  const char* watchdog;    /* the latest of these in words, one line; "": none. Valid until the next
                            * call on the session */
  int32_t heat;            /* a sapwood_heat, by now */
  int32_t heat_reason;     /* a sapwood_reason: of its latest change */
  int32_t memory_pressure; /* a sapwood_memory_pressure, by now */
  int32_t memory_reason;   /* a sapwood_reason */
  int32_t strategy;        /* a sapwood_strategy: of the latest step */
  int32_t strategy_reason; /* a sapwood_reason: of its latest change */
  int32_t tree_nodes;      /* of the latest step's draft; over its depth: how much it branches */
  int32_t tree_depth;
  int64_t strategy_changes;
  double recent_tokens_per_second; /* of the latest 16 steps */
  double recent_accepted_length;   /* emitted tokens a step, of these */
  double celsius;                  /* the latest reading; NaN: none */
  int64_t kv_bytes;                /* of the KV cache, that this text and earlier ones hold */
} sapwood_stats;
SAPWOOD_API void sapwood_stats_init(sapwood_stats* stats, size_t size);

/* Of the latest answer, finished or not. */
SAPWOOD_API sapwood_code sapwood_session_stats(const sapwood_session* session,
                                               sapwood_stats* stats);

/* The latest step's draft tree as JSON (see tree/draft_tree.h), valid until the next call of this
 * function on the session; NULL, with sapwood_last_error, if there is no memory for it. */
SAPWOOD_API const char* sapwood_session_tree_json(sapwood_session* session);

/* ---- heat, power and memory ---- */

/* What the device's sensors and the platform say, now. NaN, or -1 where it is an integer: there is
 * no such sensor, or it is not to be heard. */
typedef struct sapwood_readings {
  size_t size;            /* set by sapwood_readings_init */
  double celsius;         /* of the device */
  double watts;           /* that it draws; NaN: battery_amperes times battery_volts */
  double battery_amperes; /* that the battery gives, of either sign; NaN while it is charged */
  double battery_volts;
  double watts_budget;    /* default 4: above it is like being warm */
  double memory_used;     /* share of the device's memory that is taken, 0 to 1 */
  int32_t thermal_status; /* Android's PowerManager.THERMAL_STATUS_*, 0 (none) to 6: light and
                           * moderate count as warm, severe as hot, what is above as critical */
  int32_t trim_level;     /* the latest onTrimMemory: from RUNNING_LOW (10) and BACKGROUND (40) on
                           * memory is low, at RUNNING_CRITICAL (15) and COMPLETE (80) critical;
                           * 0: the platform asks for nothing any more */
} sapwood_readings;
SAPWOOD_API void sapwood_readings_init(sapwood_readings* readings, size_t size); /* none at all */

/* From the next step on the session speculates as much as the governor then allows: less when it is
 * hot, above the power budget, or when 90 % of the memory are taken. Readings with neither heat nor
 * power leave the state of heat as it is, those without memory that of memory. A state is entered
 * at once and left one by one, each after the device has been well for at least two seconds, so a
 * host hands over readings about once a second. SAPWOOD_INVALID_ARGUMENT, and nothing changes: an
 * infinite reading, watts or a budget below 0, memory_used outside 0 to 1. */
SAPWOOD_API sapwood_code sapwood_session_observe(sapwood_session* session,
                                                 const sapwood_readings* readings);

/* ---- trace ---- */

/* What a session did and when. Holds counts and times, never a token or a text. */
typedef struct sapwood_trace_event {
  int32_t name;        /* see sapwood_trace_event_name */
  int32_t mode;        /* a sapwood_mode */
  int32_t step;        /* of the answer, from 1; 0: before the first */
  int32_t rows;        /* of the pass, or nodes of the tree */
  int32_t accepted;    /* guesses that the target agreed with */
  float value;         /* of a counter, or what something is since a change */
  int64_t begin_ns;    /* of CLOCK_MONOTONIC */
  int64_t duration_ns; /* of a stage */
  int32_t reason;      /* of a change: a sapwood_reason */
} sapwood_trace_event;

/* Records the latest `capacity` events from here on (rounded up to a power of two, at most
 * 4194304, of 48 bytes each), or stops at 0. What was recorded and not taken is dropped. */
SAPWOOD_API sapwood_code sapwood_session_trace(sapwood_session* session, int32_t capacity);

/* Takes what was recorded since the last such call: *events points to *count of them, the oldest
 * first, valid until the next call of this function or of sapwood_session_trace. *lost, which may
 * be NULL: how many more there were, for which the ring had no room. None where nothing is
 * recorded. */
SAPWOOD_API sapwood_code sapwood_session_take_trace(sapwood_session* session,
                                                    const sapwood_trace_event** events,
                                                    size_t* count, uint64_t* lost);

/* Takes what was recorded, as above, and writes it as a Perfetto trace, for ui.perfetto.dev and
 * `sapwood trace explain`. *count and *lost, which may be NULL: how many events the file holds, and
 * how many more there were. SAPWOOD_INVALID_ARGUMENT where nothing is being recorded, or where the
 * file cannot be written; none is left then. */
SAPWOOD_API sapwood_code sapwood_session_save_trace(sapwood_session* session, const char* file,
                                                    size_t* count, uint64_t* lost);

/* Of an event's name: what a trace calls it ("Draft_Generate", ...), the sapwood_trace_kind, and
 * the track it lies on ("engine", "draft", "target"). "unknown" and -1 outside 0 ..
 * sapwood_trace_names() - 1. */
SAPWOOD_API int32_t sapwood_trace_names(void);
SAPWOOD_API const char* sapwood_trace_event_name(int32_t name);
SAPWOOD_API int32_t sapwood_trace_event_kind(int32_t name);
SAPWOOD_API const char* sapwood_trace_event_track(int32_t name);

/* ---- the engine's protocol ---- */

/* Text in, text out: answers the requests of docs/engine-protocol.md that arrive on the file
 * descriptor `input`, on `output`, until `shutdown` or the end of the input. Chats are rendered and
 * encoded here, so the caller needs no tokenizer. Blocks: call it on a thread of its own, with two
 * pipes or a socket. SAPWOOD_CORRUPT, with sapwood_last_error, where what came in is not the
 * protocol. Closes neither descriptor. */
SAPWOOD_API sapwood_code sapwood_serve(int input, int output);

#ifdef __cplusplus
}
#endif

#endif /* SAPWOOD_SAPWOOD_H */
