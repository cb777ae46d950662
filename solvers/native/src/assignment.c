/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "assignment.h"

#include "clock.h"
#include "random_search.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES_PER_GLANCE = 1024 /* moves between two looks at the clock */ };

/* The additional cost of a node's edges with another strategy. */
static double edges_change(const braid_assignment *a, const int32_t *choice, int32_t k,
                           int64_t next) {
  const braid_pairwise *p = &a->pairs;
  double change = 0;
  for (int32_t at = p->earlier.begin[k]; at < p->earlier.begin[k + 1]; ++at) {
    int32_t e = p->earlier.item[at];
    int64_t columns = p->node_begin[k + 1] - p->node_begin[k];
    const double *row = a->edge + p->edge_begin[e] + choice[p->source[e]] * columns;
    change += row[next] - row[choice[k]];
  }
  for (int32_t at = p->later.begin[k]; at < p->later.begin[k + 1]; ++at) {
    int32_t e = p->later.item[at], other = p->target[e];
    int64_t columns = p->node_begin[other + 1] - p->node_begin[other];
    const double *column = a->edge + p->edge_begin[e] + choice[other];
    change += column[next * columns] - column[choice[k] * columns];
  }
  return change;
}

static bool fits(const braid_assignment *a, const double *slack, int32_t k, int64_t now,
                 int64_t next) {
  for (int32_t at = a->loads.begin[k]; at < a->loads.begin[k + 1]; ++at) {
    int32_t load = a->loads.item[at];
    const double *usage = a->usage + a->usage_begin[load];
    double more = usage[next] - usage[now];
    for (int32_t row = a->load_begin[load]; more > 0 && row < a->load_end[load]; ++row)
      if (slack[row] < more)
        return false;
  }
  return true;
}

static void charge(const braid_assignment *a, double *slack, int32_t k, int64_t now, int64_t next) {
  for (int32_t at = a->loads.begin[k]; at < a->loads.begin[k + 1]; ++at) {
    int32_t load = a->loads.item[at];
    const double *usage = a->usage + a->usage_begin[load];
    double more = usage[next] - usage[now];
    for (int32_t row = a->load_begin[load]; more != 0 && row < a->load_end[load]; ++row)
      slack[row] -= more;
  }
}

double braid_anneal_assignment(const braid_assignment *a, int32_t *best, double *slack, double hot,
                               double cold, int64_t moves, double seconds, uint64_t random) {
  const braid_pairwise *p = &a->pairs;
  size_t bytes = (size_t)p->nodes * sizeof(int32_t);
  int32_t *choice = malloc(bytes + 1);
  if (!choice)
    return BRAID_OUT_OF_MEMORY;
  memcpy(choice, best, bytes);
  double begin_seconds = clock_seconds(), temperature = hot, gained = 0, most = 0;
  bool is_ahead = false; /* whether `choice` is better than `best` */
  for (int64_t move = 0; move < moves && p->nodes; ++move) {
    if (move % MOVES_PER_GLANCE == 0) {
      /* It is cold at the end, be that of the moves or of the time. */
      double passed = (clock_seconds() - begin_seconds) / seconds;
      double done = (double)move / (double)moves;
      if (passed >= 1)
        break;
      temperature = cooled(hot, cold, passed > done ? passed : done);
    }
    int32_t k = (int32_t)draw_below(&random, p->nodes);
    const int64_t begin = p->node_begin[k], size = p->node_begin[k + 1] - begin;
    int64_t now = choice[k], next = draw_below(&random, size);
    if (next == now)
      continue;
    double edges = edges_change(a, choice, k, next);
    double change = edges + a->guided[begin + next] - a->guided[begin + now];
    double tolerance = draw_tolerance(&random, temperature);
    if (!(change < INFINITY) || (change > 0 && change > tolerance) || !fits(a, slack, k, now, next))
      continue;
    double after = gained - (edges + a->node[begin + next] - a->node[begin + now]);
    if (is_ahead && after < most) {
      memcpy(best, choice, bytes);
      is_ahead = false;
    }
    charge(a, slack, k, now, next);
    choice[k] = (int32_t)next;
    gained = after;
    if (gained > most) {
      most = gained;
      is_ahead = true;
    }
  }
  if (is_ahead)
    memcpy(best, choice, bytes);
  free(choice);
  return most;
}
