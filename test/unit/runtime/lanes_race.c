/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lanes that hand plain memory to each other: each adds to what the one before it has made. With
 * -fsanitize=thread, a race is an error. Prints the sum that the last one has.
 */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { LANES = 4, ROUNDS = 500, LINE = 8 };

static _Alignas(64) int64_t counters[LANES][LINE];
static int64_t made;

static void *run(void *argument) {
  int64_t lane = (int64_t)(intptr_t)argument;
  int64_t before = (lane + LANES - 1) % LANES;
  for (int64_t round = 1; round <= ROUNDS; ++round) {
    /* The first lane waits for the last one's round before. */
    braid_wait(counters[before], lane == 0 ? round - 1 : round);
    if (round % 100 == 0)
      usleep(2000); /* long enough for the others to fall asleep */
    made += lane + round;
    braid_post(counters[lane], round);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[LANES];
  for (int lane = 0; lane < LANES; ++lane)
    pthread_create(&threads[lane], NULL, run, (void *)(intptr_t)lane);
  for (int lane = 0; lane < LANES; ++lane)
    pthread_join(threads[lane], NULL);
  printf("%lld\n", (long long)made);
  return 0;
}
