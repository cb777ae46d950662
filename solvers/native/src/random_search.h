/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the random searches of assignments share: the clock, the generator of S. Vigna as in
 * anneal.c, and draws from a range.
 */
#ifndef BRAID_RANDOM_SEARCH_H
#define BRAID_RANDOM_SEARCH_H

#include <stdint.h>
#include <time.h>

static inline double clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline uint64_t draw(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545f4914f6cdd1dull;
}

/* One of 0 to `count` - 1; `count` is less than 2^32. */
static inline int64_t draw_below(uint64_t *state, int64_t count) {
  return (int64_t)((draw(state) >> 32) * (uint64_t)count >> 32);
}

#endif
