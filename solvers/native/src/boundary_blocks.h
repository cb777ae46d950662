/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Blocks of items that may replace each other between two full moments: some items that end and
 * some that begin, of equal sums.
 */
#ifndef BRAID_BOUNDARY_BLOCKS_H
#define BRAID_BOUNDARY_BLOCKS_H

#include "small_set.h"

/* Sizes of the items that end and of those that begin, descending. */
typedef struct {
  const int64_t *size[2];
  int32_t count[2];
  int64_t unit;                /* of which all are multiples */
  const double *log_factorial; /* by number, up to SMALL_SET_SIZE */
} boundary;

typedef struct {
  small_set side[2]; /* items that end, and items that begin */
  double evidence;   /* how unlikely it is that the sums are equal by chance, a logarithm */
} block;

typedef struct {
  block *blocks;
  int32_t count;
  int32_t capacity;
  int64_t work;
  bool cut; /* whether there may be more */
  bool out_of_memory;
} block_list;

/* Lists blocks of the remaining items of both sides, the likeliest first: all blocks with the
 * largest remaining item, or only the likeliest if there are many. */
void list_blocks(const boundary *b, const small_set left[2], block_list *list);

/* Adds blocks of all of `ending`, if they can have that item. */
void add_blocks_of(const boundary *b, const small_set left[2], small_set ending, block_list *list);

#endif
