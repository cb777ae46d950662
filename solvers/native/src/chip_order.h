/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Orders of issue on a chip with several units and little memory: their schedules, and the search
 * for the one that ends first. The algorithms are described in solvers/ordering: `latency` (the
 * units), `residency_plan` (what is on the chip when) and `residency` (what waits for what).
 *
 * Times are integers of a unit that the caller chooses, so that equal schedules are equal.
 */
#ifndef BRAID_CHIP_ORDER_H
#define BRAID_CHIP_ORDER_H

#include <stdint.h>

#define BRAID_API __attribute__((visibility("default")))

/* Lists of numbers: list i is item[begin[i]] to item[begin[i + 1] - 1]. */
typedef struct {
  const int32_t *begin;
  const int32_t *item;
} braid_lists;

typedef struct {
  int32_t ops;
  int32_t values;
  int32_t units; /* kinds of units */
  int32_t load_unit;
  int32_t store_unit;
  int64_t capacity;
  const int32_t *slots; /* by kind: the first of its units; at the end how many there are */
  braid_lists before;   /* ops by op */
  braid_lists after;
  braid_lists stages;   /* kinds of units by op, one for each stage */
  const int64_t *times; /* by stage */
  const uint8_t *waits; /* by stage: whether it needs the ops before */
  braid_lists reads;    /* values by op */
  braid_lists makes;
  braid_lists over;
  braid_lists users;   /* ops by value */
  braid_lists sources; /* values by value */
  const int64_t *size; /* by value, as what follows */
  const int64_t *load;
  const int64_t *store;
  const uint8_t *output;
  const uint8_t *present;
  const uint8_t *kept;
  const uint8_t *moves; /* by op: whether its position matters */
} braid_chip;

enum { BRAID_OUT_OF_MEMORY = INT32_MIN };

/* An order and its schedule, with loads up to `ahead` ops early. The chip must outlive it.
 * NULL when there is no memory. */
typedef struct braid_timeline braid_timeline;
BRAID_API braid_timeline *braid_timeline_open(const braid_chip *chip, int32_t ahead);
BRAID_API void braid_timeline_close(braid_timeline *t);

/* When `order` ends. Returns -1 - op where the values of an op do not fit the capacity, or
 * BRAID_OUT_OF_MEMORY. */
BRAID_API int64_t braid_timeline_reset(braid_timeline *t, const int32_t *order);

/* Simulated annealing of an order; all but `best` is set by the caller. */
typedef struct {
  uint64_t random; /* state of the generator */
  double hot;      /* temperature of the first move, in units of time */
  double cold;     /* temperature of the last */
  int64_t moves;
  int64_t done;   /* moves so far */
  int64_t target; /* a time that is good enough */
  int64_t value;  /* when `best` ends */
  int32_t *best;  /* the best order so far */
} braid_annealing;

/* Goes on for at most `moves` moves, from the order in the timeline; at the end that is `best`.
 * Returns 1 when all moves are done or the target is reached, 0 before, or
 * BRAID_OUT_OF_MEMORY. */
BRAID_API int32_t braid_anneal(braid_timeline *t, braid_annealing *a, int64_t moves);

#endif
