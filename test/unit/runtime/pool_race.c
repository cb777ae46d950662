/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Several callers at once, loops inside of loops, and streams, on more threads than there are CPUs.
 * With -fsanitize=thread, a race is an error.
 */
#include "pool_work.h"

#include <pthread.h>
#include <unistd.h>

enum { CALLERS = 4, TURNS = 150 };

static void do_loops(void *context, int64_t begin, int64_t end) {
  const braid_env *env = context;
  for (int64_t i = begin; i < end; ++i)
    run_checked_loop(env, 40 + i);
}

static void *call(void *argument) {
  int64_t caller = (int64_t)(intptr_t)argument;
  for (int64_t turn = 0; turn < TURNS; ++turn) {
    braid_env env = env_of(1 + (caller + turn) % 5);
    run_checked_loop(&env, turn * 27 % MOST);
    run_checked_streams(&env);
    env.parallel_for(&env, do_loops, &env, turn % 7);
    if (turn % 50 == 0)
      usleep(2000); /* long enough for workers to fall asleep */
  }
  return NULL;
}

int main(void) {
  pthread_t callers[CALLERS];
  for (int i = 0; i < CALLERS; ++i)
    REQUIRE(pthread_create(&callers[i], NULL, call, (void *)(intptr_t)i) == 0);
  for (int i = 0; i < CALLERS; ++i)
    pthread_join(callers[i], NULL);
  return 0;
}
