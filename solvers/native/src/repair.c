/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "assignment.h"

#include "clock.h"
#include "containers.h"
#include "random_search.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
  STEPS_PER_GLANCE = 256, /* steps between two looks at the clock */
  TRIED_LOADS = 12,       /* loads of a row that one step considers */
  RESTING = 4             /* steps for which a node that was changed stays as it is */
};

static const double HEAVIER = 1.5; /* factor of a constraint that no change mends */
static const double NOISE = 0.02;  /* share of changes that are for the worse */

typedef struct {
  const braid_assignment *a;
  int32_t *choice;
  double *slack;
  double *row_weight;   /* cost of a unit beyond the capacity */
  double *edge_weight;  /* cost of a forbidden pair */
  value_set rows;       /* those beyond their capacity */
  value_set edges;      /* those at a forbidden pair */
  int64_t *changed;     /* by node: the step of its last change */
  int32_t *owner;       /* by load: its node */
  int32_t leaves;       /* of the tree over the rows: a power of two */
  int32_t *piece_begin; /* by tree node: the loads that take all of its rows, and no more above */
  int32_t *piece_load;
  uint64_t random;
} repair;

/* A change of one node. */
typedef struct {
  double cost;
  int32_t node;
  int64_t next;
} change;

static int64_t size_of(const repair *r, int32_t k) {
  const braid_pairwise *p = &r->a->pairs;
  return p->node_begin[k + 1] - p->node_begin[k];
}

/* Where the cost of an edge lies that `k`, one of its ends, has at strategy `s`. */
static int64_t edge_cell(const repair *r, int32_t e, int32_t k, int64_t s) {
  const braid_pairwise *p = &r->a->pairs;
  int32_t source = p->source[e], target = p->target[e];
  int64_t row = source == k ? s : r->choice[source], column = target == k ? s : r->choice[target];
  return p->edge_begin[e] + row * size_of(r, target) + column;
}

static double edge_cost(const repair *r, int32_t e, int64_t cell) {
  double cost = r->a->edge[cell];
  return cost < INFINITY ? cost : r->edge_weight[e];
}

/* The additional cost, weights included, if `k` takes `next`. */
static double cost_of_change(const repair *r, int32_t k, int64_t next) {
  const braid_assignment *a = r->a;
  const braid_lists *sides[] = {&a->pairs.earlier, &a->pairs.later};
  int64_t begin = a->pairs.node_begin[k], now = r->choice[k];
  double cost = a->guided[begin + next] - a->guided[begin + now];
  for (int side = 0; side < 2; ++side)
    for (int32_t at = sides[side]->begin[k]; at < sides[side]->begin[k + 1]; ++at) {
      int32_t e = sides[side]->item[at];
      cost += edge_cost(r, e, edge_cell(r, e, k, next)) - edge_cost(r, e, edge_cell(r, e, k, now));
    }
  for (int32_t at = a->loads.begin[k]; at < a->loads.begin[k + 1]; ++at) {
    int32_t load = a->loads.item[at];
    const double *usage = a->usage + a->usage_begin[load];
    double more = usage[next] - usage[now];
    if (more == 0)
      continue;
    for (int32_t row = a->load_begin[load]; row < a->load_end[load]; ++row) {
      double slack = r->slack[row], left = slack - more;
      if (slack < 0 || left < 0)
        cost += r->row_weight[row] * ((left < 0 ? -left : 0) - (slack < 0 ? -slack : 0));
    }
  }
  return cost;
}

static void keep_set(value_set *set, int32_t v, bool in) {
  if (in && !value_set_has(set, v))
    value_set_add(set, v);
  else if (!in && value_set_has(set, v))
    value_set_drop(set, v);
}

static void apply_change(repair *r, int32_t k, int64_t next, int64_t step) {
  const braid_assignment *a = r->a;
  const braid_lists *sides[] = {&a->pairs.earlier, &a->pairs.later};
  for (int32_t at = a->loads.begin[k]; at < a->loads.begin[k + 1]; ++at) {
    int32_t load = a->loads.item[at];
    const double *usage = a->usage + a->usage_begin[load];
    double more = usage[next] - usage[r->choice[k]];
    for (int32_t row = a->load_begin[load]; more != 0 && row < a->load_end[load]; ++row) {
      r->slack[row] -= more;
      keep_set(&r->rows, row, r->slack[row] < 0);
    }
  }
  r->choice[k] = (int32_t)next;
  r->changed[k] = step;
  for (int side = 0; side < 2; ++side)
    for (int32_t at = sides[side]->begin[k]; at < sides[side]->begin[k + 1]; ++at) {
      int32_t e = sides[side]->item[at];
      keep_set(&r->edges, e, !(a->edge[edge_cell(r, e, k, next)] < INFINITY));
    }
}

/* Writes the best strategy of `k` to `best`: among those that use less in `load`, if that is
 * given. */
static void consider(repair *r, int32_t k, int32_t load, int64_t step, change *best) {
  const braid_assignment *a = r->a;
  if (step - r->changed[k] <= RESTING)
    return;
  const double *usage = load < 0 ? NULL : a->usage + a->usage_begin[load];
  bool is_random = draw_share(&r->random) < NOISE;
  for (int64_t s = 0; s < size_of(r, k); ++s) {
    if (s == r->choice[k] || (usage && usage[s] >= usage[r->choice[k]]) ||
        !(a->guided[a->pairs.node_begin[k] + s] < INFINITY))
      continue;
    double cost = is_random ? -INFINITY : cost_of_change(r, k, s);
    if (best->node < 0 || cost < best->cost)
      *best = (change){cost, k, s};
  }
}

/* Considers some of the loads that a row has. */
static void consider_row(repair *r, int32_t row, int64_t step, change *best) {
  int32_t total = 0;
  for (int32_t at = r->leaves + row; at; at /= 2)
    total += r->piece_begin[at + 1] - r->piece_begin[at];
  for (int tried = 0; tried < TRIED_LOADS && tried < total; ++tried) {
    /* Tries each of a few loads, but only some of many. */
    int32_t rank = total <= TRIED_LOADS ? tried : (int32_t)draw_below(&r->random, total);
    int32_t at = r->leaves + row;
    for (int32_t held; rank >= (held = r->piece_begin[at + 1] - r->piece_begin[at]); at /= 2)
      rank -= held;
    int32_t load = r->piece_load[r->piece_begin[at] + rank];
    consider(r, r->owner[load], load, step, best);
  }
}

/* Changes one node to mend one violated constraint, whose weight grows if no change helps. */
static void mend(repair *r, int64_t step) {
  const braid_pairwise *p = &r->a->pairs;
  int64_t which = draw_below(&r->random, (int64_t)r->rows.count + r->edges.count);
  change best = {INFINITY, -1, 0};
  double *weight;
  if (which < r->rows.count) {
    int32_t row = r->rows.value[which];
    weight = &r->row_weight[row];
    consider_row(r, row, step, &best);
  } else {
    int32_t e = r->edges.value[which - r->rows.count];
    weight = &r->edge_weight[e];
    consider(r, p->source[e], -1, step, &best);
    consider(r, p->target[e], -1, step, &best);
  }
  if (best.node >= 0 && best.cost < 0)
    apply_change(r, best.node, best.next, step);
  else if (*weight < 1e100)
    *weight *= HEAVIER;
}

/* Calls `piece_begin[tree node] += 1`, or enters `load`, for the few tree nodes that are a load's
 * rows together. */
static void spread_load(repair *r, int32_t load, bool enter) {
  int32_t low = r->leaves + r->a->load_begin[load], high = r->leaves + r->a->load_end[load];
  for (; low < high; low /= 2, high /= 2) {
    int32_t pieces[2], count = 0;
    if (low & 1)
      pieces[count++] = low++;
    if (high & 1)
      pieces[count++] = --high;
    while (count) {
      int32_t at = pieces[--count];
      if (enter)
        r->piece_load[--r->piece_begin[at + 1]] = load;
      else
        ++r->piece_begin[at + 1];
    }
  }
}

/* The loads of each row, as a tree of rows: a load stands at few tree nodes. */
static bool open_rows(repair *r) {
  const braid_assignment *a = r->a;
  int32_t loads = a->loads.begin[a->pairs.nodes];
  for (r->leaves = 1; r->leaves <= a->rows; r->leaves *= 2)
    ;
  r->owner = malloc(((size_t)loads + 1) * sizeof *r->owner);
  r->piece_begin = calloc((size_t)r->leaves * 2 + 2, sizeof *r->piece_begin);
  if (!r->owner || !r->piece_begin)
    return false;
  for (int32_t k = 0; k < a->pairs.nodes; ++k)
    for (int32_t at = a->loads.begin[k]; at < a->loads.begin[k + 1]; ++at)
      r->owner[a->loads.item[at]] = k;
  for (int32_t load = 0; load < loads; ++load)
    spread_load(r, load, false);
  for (int32_t at = 0; at <= 2 * r->leaves; ++at)
    r->piece_begin[at + 1] += r->piece_begin[at];
  r->piece_load = malloc(((size_t)r->piece_begin[2 * r->leaves] + 1) * sizeof *r->piece_load);
  if (!r->piece_load)
    return false;
  /* Entering decrements each end to its begin, which is the slot for the next entry. */
  for (int32_t load = 0; load < loads; ++load)
    spread_load(r, load, true);
  memmove(r->piece_begin, r->piece_begin + 1, (size_t)r->leaves * 2 * sizeof *r->piece_begin);
  return true;
}

static bool open_repair(repair *r, double row_weight, double edge_weight) {
  const braid_assignment *a = r->a;
  int32_t nodes = a->pairs.nodes, edges = a->pairs.later.begin[nodes];
  r->row_weight = malloc(((size_t)a->rows + 1) * sizeof *r->row_weight);
  r->edge_weight = malloc(((size_t)edges + 1) * sizeof *r->edge_weight);
  r->changed = malloc(((size_t)nodes + 1) * sizeof *r->changed);
  bool has_rows = value_set_open(&r->rows, a->rows), has_edges = value_set_open(&r->edges, edges);
  if (!r->row_weight || !r->edge_weight || !r->changed || !has_rows || !has_edges || !open_rows(r))
    return false;
  for (int32_t row = 0; row < a->rows; ++row) {
    r->row_weight[row] = row_weight;
    keep_set(&r->rows, row, r->slack[row] < 0);
  }
  for (int32_t e = 0; e < edges; ++e) {
    int32_t source = a->pairs.source[e];
    r->edge_weight[e] = edge_weight;
    keep_set(&r->edges, e, !(a->edge[edge_cell(r, e, source, r->choice[source])] < INFINITY));
  }
  for (int32_t k = 0; k < nodes; ++k)
    r->changed[k] = -RESTING - 1;
  return true;
}

int64_t braid_repair_assignment(const braid_assignment *a, int32_t *choice, double *slack,
                                double row_weight, double edge_weight, int64_t steps,
                                double seconds, uint64_t random) {
  repair r = {.a = a, .choice = choice, .slack = slack, .random = random};
  int64_t left = BRAID_OUT_OF_MEMORY;
  if (open_repair(&r, row_weight, edge_weight)) {
    double end = clock_seconds() + seconds;
    for (int64_t step = 0; step < steps && r.rows.count + r.edges.count; ++step) {
      if (step % STEPS_PER_GLANCE == 0 && clock_seconds() > end)
        break;
      mend(&r, step);
    }
    left = (int64_t)r.rows.count + r.edges.count;
  }
  value_set_close(&r.rows);
  value_set_close(&r.edges);
  free(r.row_weight);
  free(r.edge_weight);
  free(r.changed);
  free(r.owner);
  free(r.piece_begin);
  free(r.piece_load);
  return left;
}
