/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops and streams that know what they should have done, for programs that test the pool.
 */
#ifndef POOL_WORK_H
#define POOL_WORK_H

#include "internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

/* Ends the program unless the condition holds, also where asserts are off. */
#define REQUIRE(condition)                                                                         \
  do                                                                                               \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      _Exit(1);                                                                                    \
    }                                                                                              \
  while (0)

static inline braid_env env_of(int64_t threads) {
  return (braid_env){.threads = threads,
                     .parallel_for = braid_parallel_for,
                     .run_inter_op = braid_run_inter_op,
                     .post = braid_post,
                     .wait = braid_wait};
}

/* Plain memory, so that a sanitizer sees two threads at one element. */
typedef struct loop {
  int64_t n;
  int done[MOST];
} loop;

static inline void do_iterations(void *context, int64_t begin, int64_t end) {
  loop *work = context;
  REQUIRE(0 <= begin && begin < end && end <= work->n);
  for (int64_t i = begin; i < end; ++i)
    work->done[i] += 1;
}

/* Each iteration runs once. */
static inline void run_checked_loop(const braid_env *env, int64_t n) {
  static _Thread_local loop work;
  work.n = n;
  memset(work.done, 0, sizeof work.done);
  env->parallel_for(env, do_iterations, &work, n);
  for (int64_t i = 0; i < n; ++i)
    REQUIRE(work.done[i] == 1);
}

enum { STREAMS = 4, ROUNDS = 5 };

typedef struct streams {
  const braid_env *env;
  _Alignas(64) int64_t counters[STREAMS][8];
  int64_t made;
} streams;

/* Each stream adds to what the one before it has made; in the order of a program. */
static inline void do_streams(void *context, int64_t begin, int64_t end) {
  streams *work = context;
  for (int64_t round = 1; round <= ROUNDS; ++round)
    for (int64_t stream = begin; stream < end; ++stream) {
      if (stream > 0)
        work->env->wait(work->counters[stream - 1], round);
      else
        work->env->wait(work->counters[STREAMS - 1], round - 1);
      work->made += stream + round;
      work->env->post(work->counters[stream], round);
    }
}

static inline void run_checked_streams(const braid_env *env) {
  streams work = {.env = env};
  env->run_inter_op(env, do_streams, &work, STREAMS);
  REQUIRE(work.made == ROUNDS * STREAMS * (STREAMS - 1) / 2 + STREAMS * ROUNDS * (ROUNDS + 1) / 2);
}

#endif /* POOL_WORK_H */
