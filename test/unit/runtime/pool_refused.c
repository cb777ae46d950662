/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A system that gives no threads for a while: loops and streams run all the same, it is not asked
 * for every one of them, and later there are workers. Built with this pthread_create and clock.
 */
#define _GNU_SOURCE
#undef pthread_create
#include "pool_work.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static int asked, made;
static bool gives;
static time_t passed; /* seconds */

int maybe_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                 void *argument) {
  ++asked;
  if (!gives)
    return EAGAIN;
  ++made;
  return pthread_create(thread, attributes, run, argument);
}

int read_clock(clockid_t clock, struct timespec *time) {
  (void)clock;
  *time = (struct timespec){.tv_sec = passed};
  return 0;
}

static void run_both(const braid_env *env) {
  for (int turn = 0; turn < 10; ++turn) {
    run_checked_loop(env, 1000);
    run_checked_streams(env);
  }
}

int main(void) {
  braid_env env = env_of(2);
  for (int seconds = 1; seconds <= 3; ++seconds) {
    run_both(&env);
    REQUIRE(asked == seconds && made == 0);
    passed += 2;
  }
  gives = true;
  run_both(&env);
  REQUIRE(made == 1);
  return 0;
}
