/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An order of issue that is changed a window at a time.
 */
#ifndef BRAID_TIMELINE_H
#define BRAID_TIMELINE_H

#include "copies.h"

enum { SPACING = 16 };

struct braid_timeline {
  const braid_chip *chip;
  schedule schedule;
  machine machine;
  int64_t value;    /* when the order ends, as estimated since the last reset */
  int32_t busiest;  /* the kind of units with most work for each */
  record *copies;   /* of the machine, every SPACING ops */
  record *spare;    /* those of an order that is tried */
  int32_t blocks;   /* there are copies before each of as many blocks of ops, and at the end */
  int64_t *waiting; /* by block: how long the busiest unit has waited until its end */
  int32_t *window;  /* scratch: what a change replaces */
  int32_t *next;    /* scratch: of each value, which use comes next */
};

/* Replaces the ops from `begin` on by `ops`, the same ones in another order, if the order then ends
 * at `limit` or before. Returns whether it did. */
bool timeline_change(braid_timeline *t, int32_t begin, int32_t count, const int32_t *ops,
                     int64_t limit);

#endif
