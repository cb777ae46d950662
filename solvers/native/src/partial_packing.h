/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A partial packing: what is placed, and where the rest can begin.
 */
#ifndef BRAID_PARTIAL_PACKING_H
#define BRAID_PARTIAL_PACKING_H

#include "packing.h"

#include <stdbool.h>

/* An item that is not placed yet, and the lowest base that it can still have. */
typedef struct {
  int64_t lowest;
  int32_t item;
  bool passed; /* the search passed over it: another item must be below it first */
} open_item;

/* The lower bound of an item's base before another item was placed. */
typedef struct {
  int32_t item;
  int64_t lowest;
} raised;

/* The identity of partial packings, in two independent hashes. */
typedef struct {
  uint64_t first;
  uint64_t second;
} fingerprint;

typedef struct {
  const braid_packing *p;
  const int32_t *rank;
  int64_t *lowest; /* by item: its lower bound given the placed items, exact for placed ones */
  bool *placed;
  int64_t *top;      /* by section: scratch */
  int64_t *total;    /* by section: scratch */
  int32_t *crossing; /* by section: scratch */
  int32_t *order;    /* items in the order in which they were placed */
  int32_t count;
  raised *trail;
  int64_t trail_count;
  int64_t trail_capacity;
  double end; /* by the clock of clock.h */
  bool out_of_memory;
} packer;

/* Starts with nothing placed; ends after so many seconds. Returns whether there is memory. */
bool packer_open(packer *s, const braid_packing *p, const int32_t *rank, double seconds);
void packer_close(packer *s);

/* Whether the time is over. */
bool packer_is_late(const packer *s);

/* Whether `a` comes before `b` in the order of the search. */
static inline bool precedes(const packer *s, const open_item *a, const open_item *b) {
  return a->lowest != b->lowest ? a->lowest < b->lowest : s->rank[a->item] < s->rank[b->item];
}

/* Writes those items of `members` that come after `last` to `open`, the lowest first, and the end
 * of the lowest. Returns false where one of them does not fit any more. */
bool sort_open(const packer *s, const int32_t *members, int32_t count, const open_item *last,
               open_item *open, int64_t *end);

/* Whether every section has room for its items, each above where it begins at the least: the
 * schedule of one machine with release times. Where items are not flat, all above the first. */
bool sections_fit(packer *s, const open_item *open, int32_t count);

/* Hashes what decides which packings of the open items are left: their lower bounds, and which of
 * them were passed over. Orders of the items below that leave the same room have the same. */
fingerprint fingerprint_of(const packer *s, const open_item *open, int32_t count,
                           const open_item *last);

/* Places an item; `*covered` is whether one that is not placed yet must come above it. */
void place(packer *s, int32_t i, int64_t base, bool *covered);

/* Undoes a placement, and the bounds that it raised. */
void undo(packer *s, int32_t count, int64_t trail_count);

#endif
