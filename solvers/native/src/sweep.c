/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "sweep.h"

#include "clock.h"

#include <math.h>
#include <stdbool.h>

enum {
  NODES_PER_GLANCE = 512, /* nodes between two looks at the clock */
  STRATEGIES = 64         /* columns that are added up at once */
};

/* Moves the least cost of each row to `belief`. */
static void collect_rows(double *edge, int64_t rows, int64_t columns, double *belief) {
  for (int64_t r = 0; r < rows; ++r, edge += columns) {
    double least = INFINITY;
    for (int64_t c = 0; c < columns; ++c)
      least = edge[c] < least ? edge[c] : least;
    belief[r] += least;
    if (least < INFINITY)
      for (int64_t c = 0; c < columns; ++c)
        edge[c] -= least;
  }
}

/* Moves the least cost of each column to `belief`. */
static void collect_columns(double *edge, int64_t rows, int64_t columns, double *belief) {
  double least[STRATEGIES];
  for (int64_t begin = 0; begin < columns; begin += STRATEGIES) {
    int64_t count = columns - begin < STRATEGIES ? columns - begin : STRATEGIES;
    for (int64_t c = 0; c < count; ++c)
      least[c] = INFINITY;
    for (int64_t r = 0; r < rows; ++r) {
      const double *row = edge + r * columns + begin;
      for (int64_t c = 0; c < count; ++c)
        least[c] = row[c] < least[c] ? row[c] : least[c];
    }
    for (int64_t c = 0; c < count; ++c) {
      belief[begin + c] += least[c];
      least[c] = least[c] < INFINITY ? least[c] : 0;
    }
    for (int64_t r = 0; r < rows; ++r) {
      double *row = edge + r * columns + begin;
      for (int64_t c = 0; c < count; ++c)
        row[c] -= least[c];
    }
  }
}

/* Adds a share of `belief` to an edge, to its rows or to its columns. */
static void hand_on(double *edge, int64_t rows, int64_t columns, const double *belief, double share,
                    bool to_rows) {
  for (int64_t r = 0; r < rows; ++r, edge += columns) {
    if (to_rows) {
      double given = belief[r] * share;
      for (int64_t c = 0; c < columns; ++c)
        edge[c] += given;
    } else {
      for (int64_t c = 0; c < columns; ++c)
        edge[c] += belief[c] * share;
    }
  }
}

static int64_t strategies(const braid_pairwise *p, int32_t node) {
  return p->node_begin[node + 1] - p->node_begin[node];
}

static void visit(const braid_pairwise *p, int32_t k, double *node, double *edge, double *belief,
                  bool forward) {
  const braid_lists *from = forward ? &p->earlier : &p->later;
  const braid_lists *to = forward ? &p->later : &p->earlier;
  int64_t size = strategies(p, k);
  double *costs = node + p->node_begin[k], *own = belief + p->node_begin[k];
  for (int64_t s = 0; s < size; ++s)
    own[s] = costs[s];
  for (int32_t at = from->begin[k]; at < from->begin[k + 1]; ++at) {
    int32_t e = from->item[at];
    int64_t rows = strategies(p, p->source[e]), columns = strategies(p, p->target[e]);
    (forward ? collect_columns : collect_rows)(edge + p->edge_begin[e], rows, columns, own);
  }
  int32_t before = from->begin[k + 1] - from->begin[k], after = to->begin[k + 1] - to->begin[k];
  double share = after ? 1.0 / (before > after ? before : after) : 0;
  for (int32_t at = to->begin[k]; at < to->begin[k + 1]; ++at) {
    int32_t e = to->item[at];
    int64_t rows = strategies(p, p->source[e]), columns = strategies(p, p->target[e]);
    hand_on(edge + p->edge_begin[e], rows, columns, own, share, forward);
  }
  for (int64_t s = 0; s < size; ++s)
    costs[s] = own[s] < INFINITY ? own[s] - after * (own[s] * share) : own[s];
}

void braid_sweep(const braid_pairwise *p, double *node, double *edge, double *belief,
                 int32_t forward, double seconds) {
  double end = clock_seconds() + seconds;
  for (int32_t done = 0; done < p->nodes; ++done) {
    if (done % NODES_PER_GLANCE == 0 && clock_seconds() > end)
      return;
    visit(p, forward ? done : p->nodes - 1 - done, node, edge, belief, forward);
  }
}
