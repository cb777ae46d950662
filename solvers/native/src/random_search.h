/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The common part of random searches: the generator of S. Vigna, "An experimental exploration of
 * Marsaglia's xorshift generators, scrambled" (ACM TOMS 2016): xorshift64*, draws from a range,
 * and the temperatures of simulated annealing (S. Kirkpatrick, C. Gelatt, M. Vecchi, "Optimization
 * by simulated annealing", Science 1983).
 */
#ifndef BRAID_RANDOM_SEARCH_H
#define BRAID_RANDOM_SEARCH_H

#include <math.h>
#include <stdint.h>

/* The state is not 0. */
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

/* In [0, 1). */
static inline double draw_share(uint64_t *state) { return (double)(draw(state) >> 11) * 0x1p-53; }

/* In (0, 1]. */
static inline double draw_positive(uint64_t *state) {
  return (double)((draw(state) >> 11) + 1) * 0x1p-53;
}

/* With a mean of 1: it exceeds x at a chance of exp(-x). */
static inline double draw_exponential(uint64_t *state) { return -log(draw_positive(state)); }

/* How much worse than what it is a search may become by its next move, by the rule of N.
 * Metropolis. */
static inline double draw_tolerance(uint64_t *state, double temperature) {
  return temperature * draw_exponential(state);
}

/* The temperature once a `part` of the search is over. */
static inline double cooled(double hot, double cold, double part) {
  return hot * pow(cold / hot, part);
}

#endif
