/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Packing items into an arena of a given size, by depth-first search: see
 * solvers/packing/canonical.py for what is searched and why nothing is missed.
 */
#ifndef BRAID_PACKING_H
#define BRAID_PACKING_H

#include "chip_order.h"

typedef struct {
  int32_t items;
  int32_t sections;
  int32_t flat; /* whether items take bytes from their bases on, all the time */
  int64_t capacity;
  braid_lists others; /* items by item: those that it must not overlap */
  const int64_t
      *over; /* for each of them: the difference of its base to the item's, if it is above */
  const int64_t *under;     /* the item's base less its own, where it is below */
  braid_lists in;           /* sections by item, ascending */
  const int64_t *low;       /* for each of them: the occupied bytes, from the item's base */
  const int64_t *high;      /* and where they end */
  const int64_t *extent;    /* by item, as what follows */
  const int64_t *alignment; /* of bases */
  const int64_t *fixed;     /* the base where it is given, else -1 */
} braid_packing;

enum { BRAID_PACKING_NONE = 0, BRAID_PACKING_FOUND = 1, BRAID_PACKING_CUT = 2 };

/* Searches at most `nodes` partial packings, for at most `seconds`. If several items can lie
 * equally low, the one with the least `rank` is tried first. Each item has a different rank. Writes
 * `base` (by item) where a packing is found. Returns BRAID_PACKING_NONE where there is provably
 * none. */
BRAID_API int32_t braid_pack(const braid_packing *packing, const int32_t *rank, int64_t nodes,
                             double seconds, int64_t *base);

/* As above, but in layers of at most `width` partial packings, keeping those with the smoothest
 * skyline: a step between two sections scores 1 to 11, empty space `waste`. `seed` decides how
 * much, and among equals. Takes flat items that are not fixed. Proves nothing. */
BRAID_API int32_t braid_pack_by_beam(const braid_packing *packing, int32_t width, int32_t waste,
                                     uint64_t seed, double seconds, int64_t *base);

/* As above, from the first moment to the last, or `backwards`, by replacing blocks of items: see
 * packing_boundaries.c. Keeps `width` partial packings at a moment; `freedom` is how much it counts
 * that they leave many. Finds nothing but where no room is to spare at any moment. Proves nothing.
 * */
BRAID_API int32_t braid_pack_by_boundaries(const braid_packing *packing, int32_t width,
                                           int32_t backwards, double freedom, uint64_t seed,
                                           double seconds, int64_t *base);

#endif
