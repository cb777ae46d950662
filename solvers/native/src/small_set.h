/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sets of small numbers.
 */
#ifndef BRAID_SMALL_SET_H
#define BRAID_SMALL_SET_H

#include <stdbool.h>
#include <stdint.h>

enum { SMALL_SET_SIZE = 128 };

/* Numbers below SMALL_SET_SIZE. */
typedef struct {
  uint64_t word[2];
} small_set;

static inline bool small_set_has(small_set s, int32_t i) { return s.word[i / 64] >> i % 64 & 1; }

static inline void small_set_add(small_set *s, int32_t i) { s->word[i / 64] |= 1ull << i % 64; }

static inline bool small_set_equal(small_set a, small_set b) {
  return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

static inline small_set small_set_less(small_set a, small_set b) {
  return (small_set){{a.word[0] & ~b.word[0], a.word[1] & ~b.word[1]}};
}

static inline int32_t small_set_count(small_set s) {
  return __builtin_popcountll(s.word[0]) + __builtin_popcountll(s.word[1]);
}

static inline small_set small_set_both(small_set a, small_set b) {
  return (small_set){{a.word[0] | b.word[0], a.word[1] | b.word[1]}};
}

#endif
