/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Topological orders of little peak memory: see solvers/ordering/memory_annealing.py.
 */
#ifndef BRAID_MEMORY_ORDER_H
#define BRAID_MEMORY_ORDER_H

#include "chip_order.h"

typedef struct {
  int32_t ops;
  int32_t tensors;
  int64_t initial;    /* bytes that are live before any op runs */
  braid_lists before; /* ops by op */
  braid_lists after;
  braid_lists touches;   /* tensors by op: those that may die when it has run */
  braid_lists users;     /* ops by tensor: those after the last of which it dies */
  braid_lists reuses;    /* tensors by op: those that it may overwrite, which it touches */
  const int64_t *spared; /* for each of them: the saved bytes */
  const int64_t *size;   /* by tensor */
  const int64_t *made;   /* by op: bytes of what it makes */
  const int64_t *needs;  /* by op: those and its workspace */
} braid_memory;

typedef struct {
  uint64_t random; /* of the generator, not 0; updated */
  int64_t target;  /* a peak that is good enough */
  int64_t goal;    /* what exceeds it, over all steps, is what the search makes less */
  double hot;      /* temperatures in bytes */
  double cold;
  int64_t moves;
  int64_t most;   /* places that moves may look at, about … */
  int64_t done;   /* … and those that they did; updated */
  double seconds; /* until the search ends in any case */
  int32_t *best;  /* an order to begin with; the best one found */
  int64_t peak;   /* its peak; updated */
} braid_memory_annealing;

/* Writes the order that always runs the ready op of which the bytes that it adds, the time since
 * it is ready, and chance count least together; `depth` and `noise` weigh the latter two in bytes.
 * Returns its peak, or BRAID_OUT_OF_MEMORY. */
BRAID_API int64_t braid_list_by_memory(const braid_memory *memory, double depth, double noise,
                                       uint64_t *random, int32_t *order);

/* Returns 0, or BRAID_OUT_OF_MEMORY. */
BRAID_API int32_t braid_anneal_memory(const braid_memory *memory, braid_memory_annealing *a);

#endif
