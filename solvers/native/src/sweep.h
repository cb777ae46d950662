/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The sweeps of solvers/strategy/dual.py.
 */
#ifndef BRAID_SWEEP_H
#define BRAID_SWEEP_H

#include "chip_order.h"

/* Nodes in the order of a forward sweep, and edges from an earlier to a later one. */
typedef struct {
  int32_t nodes;
  const int64_t *node_begin; /* by node, and behind the last: its costs */
  const int64_t *edge_begin; /* by edge: its costs, a row for each strategy of the earlier node */
  braid_lists earlier;       /* edges by node: those to earlier nodes */
  braid_lists later;
  const int32_t *source; /* by edge: the earlier node */
  const int32_t *target;
} braid_pairwise;

/* Passes over the nodes, forward or backward: each collects the least costs of its edges on one
 * side and pushes its costs to the edges on the other. Costs may be infinite. Ends early after
 * `seconds`. `belief` gets what each node saw, laid out like `node`. */
BRAID_API void braid_sweep(const braid_pairwise *p, double *node, double *edge, double *belief,
                           int32_t forward, double seconds);

#endif
