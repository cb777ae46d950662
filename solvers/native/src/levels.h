/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Offsets at which an item that two sections share can begin: between full sections, the items that
 * end there, and those that begin there, fill the bytes below it.
 */
#ifndef BRAID_LEVELS_H
#define BRAID_LEVELS_H

#include "packing.h"

#include <stdbool.h>

/* Bytes in units of which all bases are multiples, and scratch for sums of them. */
typedef struct {
  const braid_packing *p;
  int64_t unit;
  braid_lists ending;    /* items by section: those that are not in the next one */
  braid_lists beginning; /* those that were not in the one before */
  braid_lists shared;    /* those that are in the next one */
  int32_t *lists;
  uint64_t *sums[2];
} levels;

int64_t common_divisor(int64_t a, int64_t b);

/* Returns whether there is memory. Flat items only. */
bool levels_open(levels *v, const braid_packing *p);
void levels_close(levels *v);

/* Raises `lowest` (by item) for the unplaced items of both `section` and the next one, by their
 * floors and the bytes that may stay empty in each. Returns whether all still fit.
 */
bool raise_shared(const levels *v, int32_t section, const int64_t *floor, const int64_t *spare,
                  const uint8_t *placed, int64_t *lowest);

#endif
