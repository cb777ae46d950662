/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The annealing and the repair of solvers/strategy/annealing.py.
 */
#ifndef BRAID_ASSIGNMENT_H
#define BRAID_ASSIGNMENT_H

#include "sweep.h"

typedef struct {
  braid_pairwise pairs;
  const double *node;   /* costs, laid out as `pairs` says */
  const double *guided; /* the same, including the price of the memory that they use */
  const double *edge;
  int32_t rows;
  braid_lists loads;         /* loads by node */
  const int32_t *load_begin; /* by load: the rows that it takes memory of */
  const int32_t *load_end;
  const int64_t *usage_begin; /* by load: where its usages by strategy begin */
  const double *usage;
} braid_assignment;

/* Changes one strategy at a time, `moves` times, at falling temperatures, and never so that a row
 * of `slack` (of the choice that it begins with) would fall below 0. Writes the best choice by
 * `node` costs to `best`, where it begins. Returns what that costs less, or BRAID_OUT_OF_MEMORY. */
BRAID_API double braid_anneal_assignment(const braid_assignment *a, int32_t *best, double *slack,
                                         double hot, double cold, int64_t moves, double seconds,
                                         uint64_t random);

/* Changes one strategy at a time for the sake of a row below 0 or a forbidden pair, drawn at
 * random, as long as there is one: The objective is a weighted sum of `guided` costs, forbidden
 * pairs and missing capacity of rows; terms that no change reduces get more weight. `choice` and
 * its `slack` are where it begins and ends. Returns how many constraints are violated then, or
 * BRAID_OUT_OF_MEMORY.
 *
 * P. Morris, "The breakout method for escaping from local minima" (AAAI 1993). */
BRAID_API int64_t braid_repair_assignment(const braid_assignment *a, int32_t *choice, double *slack,
                                          double row_weight, double edge_weight, int64_t steps,
                                          double seconds, uint64_t random);

#endif
