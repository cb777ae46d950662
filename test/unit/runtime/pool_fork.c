/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Forks after and during loops and streams; children and their children run both.
 */
#define _GNU_SOURCE
#include "pool_work.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 100, SECONDS = 60 };

static atomic_bool stop;

static void run_both(void) {
  braid_env env = env_of(3);
  run_checked_loop(&env, 1000);
  run_checked_streams(&env);
}

static void *run_on(void *unused) {
  while (!atomic_load(&stop))
    run_both();
  return unused;
}

/* Ends a process that hangs. */
static pid_t fork_watched(void) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    alarm(SECONDS);
  return child;
}

static void join_child(pid_t child) {
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_once(int number) {
  run_both();
  pid_t child = fork_watched();
  if (child != 0) {
    join_child(child);
    return;
  }
  run_both();
  if (number % 10 == 0) {
    pid_t grandchild = fork_watched();
    if (grandchild != 0)
      join_child(grandchild);
    else
      run_both();
  }
  exit(0); /* through destructors */
}

int main(void) {
  alarm(SECONDS);
  for (int i = 0; i < FORKS / 2; ++i)
    fork_once(i); /* after runs */
  pthread_t other[2];
  for (int i = 0; i < 2; ++i)
    REQUIRE(pthread_create(&other[i], NULL, run_on, NULL) == 0);
  for (int i = 0; i < FORKS / 2; ++i)
    fork_once(i); /* during runs */
  atomic_store(&stop, true);
  for (int i = 0; i < 2; ++i)
    pthread_join(other[i], NULL);
  return 0;
}
