/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Ends processes by exit() in a handler of a signal that comes during loops and streams, as servers
 * do on SIGTERM though C does not allow it. Each process comes to its end.
 */
#define _GNU_SOURCE
#include "pool_work.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 200, MOST_MICROSECONDS = 2000, SECONDS = 10 };

static void end(int number) {
  (void)number;
  exit(0);
}

/* The first teams, for which workers are made, and some more. */
static void run_until_signal(unsigned microseconds) {
  struct itimerval timer = {.it_value = {0, (suseconds_t)microseconds + 1}};
  REQUIRE(signal(SIGALRM, end) != SIG_ERR);
  REQUIRE(setitimer(ITIMER_REAL, &timer, NULL) == 0);
  braid_env env = env_of(4);
  for (;;) {
    run_checked_loop(&env, 1000);
    run_checked_streams(&env);
  }
}

int main(void) {
  unsigned seed = 1;
  for (int i = 0; i < PROCESSES; ++i) {
    unsigned microseconds = (unsigned)rand_r(&seed) % MOST_MICROSECONDS;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0)
      run_until_signal(microseconds);
    int status = -1;
    for (int turn = 0; turn < SECONDS * 1000 && waitpid(child, &status, WNOHANG) == 0; ++turn)
      usleep(1000);
    if (status == -1)
      kill(child, SIGKILL);
    REQUIRE(status == 0);
  }
  return 0;
}
