/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Partial packings without room to spare, as the orders that items can lie in at a moment: see
 * packing_boundaries.c.
 */
#ifndef BRAID_BOUNDARY_SWEEP_H
#define BRAID_BOUNDARY_SWEEP_H

#include "boundary_blocks.h"
#include "order_tree.h"
#include "partial_packing.h"

/* A block that was chosen at a moment, and the one before it. */
typedef struct {
  int32_t before; /* or -1 */
  int32_t moment;
  small_set side[2];
} block_step;

/* Orders that are left after some blocks of a moment. */
typedef struct {
  double score;
  double freedom;
  int64_t code; /* where its tree is written */
  int32_t step;
  small_set left[2]; /* what no block has yet */
} partial_order;

/* A block that may come next. */
typedef struct {
  double score;
  int32_t from; /* the partial order */
  small_set side[2];
} extension;

/* When a partial order is extended. */
typedef struct {
  small_set left[2];
  int32_t order;
} turn;

typedef struct {
  extension *items;
  int32_t count, capacity;
} extension_list;

typedef struct {
  const braid_packing *p;
  packer clock;
  order_tree tree;
  int32_t width;
  double freedom; /* how much it counts that many orders are left */
  uint64_t random;
  int32_t *begin, *end; /* by item: its first and last moment, and by moment: */
  int32_t *sides[2];    /* what ends and what begins at the boundary, by size descending */
  int64_t *sizes[2];
  boundary at;
  int32_t moment;
  extension_list extensions[2 * SMALL_SET_SIZE + 1]; /* by how many items then are in blocks */
  partial_order *orders;
  int32_t order_count, order_capacity;
  int16_t *codes;
  int64_t code_count, code_capacity;
  turn *turns; /* of as many orders as the beam is wide */
  block_step *steps;
  int32_t step_count, step_capacity;
  uint64_t *prints;
  size_t print_mask;
  uint8_t *in_set;
  int16_t *group;
  int32_t *number; /* by item that ends: its position among them */
  small_set *sets;
  block_list blocks;
} boundary_sweep;

/* Starts a sweep with no item packed, which ends after so many seconds. Returns whether there is
 * memory. */
bool sweep_open(boundary_sweep *s, const braid_packing *p, int32_t width, bool backwards,
                double seconds);
void sweep_close(boundary_sweep *s);

/* Writes the tree at the first moment. */
void sweep_write_first(boundary_sweep *s, int16_t *code);

/* Lists what ends before and what begins at `moment`, by size. Returns whether that is not too
 * much. */
bool sweep_go_to(boundary_sweep *s, int32_t moment);

/* Reads the tree of a partial order and carries a block out, in place of what ends or, where that
 * is to stay, together. Returns its root, or -1 where the orders have no such block. */
int32_t sweep_read_with(boundary_sweep *s, const int16_t *code, const small_set side[2],
                        bool stays);

/* Fills the holes at a moment. Returns whether there is a way. */
bool sweep_pass(boundary_sweep *s, int32_t moment);

#endif
