/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A chip in the course of an order: what is planned to be on it, and when its units are done.
 * Planning is a few ops ahead of what runs, so that loads may still be put between.
 */
#ifndef BRAID_STATE_H
#define BRAID_STATE_H

#include "chip_order.h"
#include "containers.h"

#include <stddef.h>

enum { NEVER = INT32_MAX };

/* Which op stands at each place, and the places at which each value is read. */
typedef struct {
  int32_t *order;
  int32_t *uses; /* ascending for each value, as chip->users.begin divides them */
} schedule;

/* The plan for an op, as indices in the queue of steps. */
typedef struct {
  int64_t op;
  int64_t over; /* the value that what it makes lies over, or -1 */
  int64_t made; /* bytes that it takes otherwise */
  int64_t deaths;
  int64_t room; /* bytes that stay free */
} step;

enum { STEP = sizeof(step) / sizeof(int64_t), EVICTION = 3 };

typedef struct {
  const braid_chip *chip;
  const schedule *schedule;
  int32_t ahead;    /* ops by which loads come early at most */
  int32_t *present; /* values that are there at first, if there is room */
  int32_t present_count;
  bool out_of_memory;

  /* The planned steps. */
  value_set resident;
  uint8_t *dirty;    /* whether a resident is nowhere else */
  int32_t *next_use; /* of residents */
  int32_t *touched;  /* of residents: the last position at which one was made or read */
  int32_t *outside;  /* the position from which on a lately stored value can be loaded */
  int64_t used;      /* bytes of residents */
  int32_t last;      /* the place of the latest load */
  queue steps;       /* planned, not run: a `step` each */
  queue loads;       /* of these steps: value, place, whether it is before the op there */
  queue evicted;     /* of these steps: position, value, whether it is stored first */
  queue dead;        /* of these steps: value */

  /* The executed ops. */
  value_set there;
  int64_t *since;  /* from when on a value that is there can be read */
  int64_t *until;  /* when those that read it so far are done */
  int64_t *stored; /* when a value is outside, 0 where it always was */
  int64_t *ends;   /* of ops */
  int64_t *free;   /* of units, kind by kind */
  queue released;  /* bytes, and from when on they are free */
  int64_t credit;  /* bytes that were free at first, or are since `space` */
  int64_t space;

  queue undo;    /* what `ends` and `stored` were: where, and the number */
  bool undoable; /* whether that is noted */
  uint8_t *mark; /* scratch by value, all 0 */
} machine;

static inline void machine_push(machine *m, queue *q, int64_t number) {
  queue_push(q, number, &m->out_of_memory);
}

static inline int32_t machine_pending(const machine *m) {
  return (m->steps.tail - m->steps.head) / STEP;
}

static inline step *machine_steps(const machine *m) {
  return (step *)(m->steps.item + m->steps.head);
}

static inline int32_t unit_count(const braid_chip *chip) { return chip->slots[chip->units]; }

static inline int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
