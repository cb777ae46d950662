/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Workers that do not get a CPU. The pool is compiled to make its threads by `make_late`, and the
 * threads wait until this program opens the gate.
 */
#include "pace.h"
#include "pool_work.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* The system's. */
extern int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                  void *argument) __asm__("pthread_create");

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

typedef struct start {
  void *(*run)(void *);
  void *argument;
} start;

static void *run_late(void *argument) {
  start late = *(start *)argument;
  free(argument);
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return late.run(late.argument);
}

int make_late(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
              void *argument) {
  start *late = malloc(sizeof *late);
  *late = (start){run, argument};
  return create(thread, attributes, run_late, late);
}

/* Whether another thread than this one took part, which waits for it a while. */
typedef struct meeting {
  pthread_t caller;
  atomic_bool met;
} meeting;

static void meet(void *context, int64_t begin, int64_t end) {
  meeting *here = context;
  (void)begin, (void)end;
  if (!pthread_equal(pthread_self(), here->caller))
    atomic_store(&here->met, true);
  else
    for (int64_t i = 0; i < 100000 && !atomic_load(&here->met); ++i) /* its CPU stays its own */
      atomic_thread_fence(memory_order_seq_cst);
}

static bool meets(const braid_env *env) {
  meeting here = {.caller = pthread_self()};
  env->parallel_for(env, meet, &here, 64);
  return atomic_load(&here.met);
}

int main(void) {
  alarm(60);
  braid_env env = env_of(3);
  pthread_mutex_lock(&gate);
  for (int i = 0; i < 100; ++i)
    run_checked_loop(&env, 1000);
  REQUIRE(!meets(&env));
  pthread_mutex_unlock(&gate);
  bool came = false;
  for (time_t end = time(NULL) + 40; !came && time(NULL) < end;) /* a machine may be busy */
    braid_pace_reset(), came = meets(&env);
  REQUIRE(came);
  run_checked_loop(&env, 1000);
  return 0;
}
