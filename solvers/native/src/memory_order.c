/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "memory_order.h"

#include "clock.h"
#include "random_search.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOVES_PER_LOOK = 256, /* moves between two looks at the clock */
  MOVE_PLACES = 8       /* places that a move of no length takes as long as */
};

/* An order, and the values that are live under it. */
typedef struct {
  const braid_memory *m;
  int32_t *order;
  int32_t *place;  /* by op */
  int32_t *last;   /* by tensor: the op after which it dies */
  int64_t *freed;  /* by op: bytes of what dies after it */
  int64_t *need;   /* by op: the bytes that it adds while it runs */
  int64_t *live;   /* by place: before the op there */
  int32_t *window; /* scratch by place */
  int32_t *old;    /* scratch by place: an order to go back to */
  uint8_t *chosen; /* scratch by op */
} memory_order;

static bool open_order(memory_order *o, const braid_memory *m) {
  size_t ops = (size_t)m->ops + 1, tensors = (size_t)m->tensors + 1;
  *o = (memory_order){.m = m};
  o->order = calloc(ops, sizeof *o->order);
  o->place = calloc(ops, sizeof *o->place);
  o->last = calloc(tensors, sizeof *o->last);
  o->freed = calloc(ops, sizeof *o->freed);
  o->need = calloc(ops, sizeof *o->need);
  o->live = calloc(ops, sizeof *o->live);
  o->window = calloc(ops, sizeof *o->window);
  o->old = calloc(ops, sizeof *o->old);
  o->chosen = calloc(ops, sizeof *o->chosen);
  return o->order && o->place && o->last && o->freed && o->need && o->live && o->window && o->old &&
         o->chosen;
}

static void close_order(memory_order *o) {
  free(o->order);
  free(o->place);
  free(o->last);
  free(o->freed);
  free(o->need);
  free(o->live);
  free(o->window);
  free(o->old);
  free(o->chosen);
}

static int32_t last_user(const memory_order *o, int32_t tensor) {
  const braid_lists *users = &o->m->users;
  int32_t last = users->item[users->begin[tensor]];
  for (int32_t k = users->begin[tensor] + 1; k < users->begin[tensor + 1]; ++k)
    if (o->place[users->item[k]] > o->place[last])
      last = users->item[k];
  return last;
}

/* The bytes that an op needs while it runs: less if it overwrites an operand that dies. */
static void update_need(memory_order *o, int32_t op) {
  int64_t spared = 0;
  for (int32_t k = o->m->reuses.begin[op]; k < o->m->reuses.begin[op + 1]; ++k)
    if (o->last[o->m->reuses.item[k]] == op && o->m->spared[k] > spared)
      spared = o->m->spared[k];
  o->need[op] = o->m->needs[op] - spared;
}

/* Computes everything anew from `order`; returns the peak. */
static int64_t reset_order(memory_order *o) {
  const braid_memory *m = o->m;
  for (int32_t k = 0; k < m->ops; ++k)
    o->place[o->order[k]] = k;
  memset(o->freed, 0, (size_t)m->ops * sizeof *o->freed);
  for (int32_t t = 0; t < m->tensors; ++t)
    if (m->users.begin[t] < m->users.begin[t + 1]) {
      o->last[t] = last_user(o, t);
      o->freed[o->last[t]] += m->size[t];
    }
  int64_t live = m->initial, peak = m->ops ? 0 : live;
  for (int32_t k = 0; k < m->ops; ++k) {
    int32_t op = o->order[k];
    update_need(o, op);
    o->live[k] = live;
    peak = live + o->need[op] > peak ? live + o->need[op] : peak;
    live += m->made[op] - o->freed[op];
  }
  return peak;
}

/* By how much a stretch of the order exceeds the goal in sum, and how often the best peak. */
typedef struct {
  double over;
  int32_t full;
} excess;

static excess excess_of(const memory_order *o, int32_t begin, int32_t end, int64_t goal,
                        int64_t peak) {
  excess e = {0, 0};
  for (int32_t k = begin; k < end; ++k) {
    int64_t during = o->live[k] + o->need[o->order[k]];
    if (during > goal)
      e.over += (double)(during - goal);
    e.full += during >= peak;
  }
  return e;
}

/* Puts `window` at `begin`, whose ops marked 1 have moved past the others. */
static void apply_window(memory_order *o, int32_t begin, int32_t end) {
  const braid_memory *m = o->m;
  for (int32_t k = begin; k < end; ++k) {
    o->order[k] = o->window[k];
    o->place[o->order[k]] = k;
  }
  for (int32_t k = begin; k < end; ++k) {
    int32_t op = o->order[k];
    if (!o->chosen[op])
      continue;
    for (int32_t at = m->touches.begin[op]; at < m->touches.begin[op + 1]; ++at) {
      int32_t t = m->touches.item[at], before = o->last[t], now = last_user(o, t);
      if (now == before)
        continue;
      o->last[t] = now;
      o->freed[before] -= m->size[t];
      o->freed[now] += m->size[t];
      update_need(o, before);
      update_need(o, now);
    }
  }
  int64_t live = o->live[begin];
  for (int32_t k = begin; k < end; ++k) {
    o->live[k] = live;
    live += m->made[o->order[k]] - o->freed[o->order[k]];
  }
}

/* Chooses the op at `from` and, among the ops from `from` to `to`, all that depend on it (if `to` >
 * `from`) or that it depends on. Writes the window in which they change places with the other ops.
 * Returns whether anything changes. */
static bool choose(memory_order *o, int32_t from, int32_t to, int32_t *begin, int32_t *end) {
  const braid_lists *edges = to > from ? &o->m->before : &o->m->after;
  int32_t step = to > from ? 1 : -1, count = 0, total = 0;
  for (int32_t k = from;; k += step) {
    int32_t op = o->order[k];
    bool own = k == from;
    for (int32_t at = edges->begin[op]; at < edges->begin[op + 1] && !own; ++at)
      own = o->chosen[edges->item[at]];
    o->chosen[op] = own;
    count += own;
    ++total;
    if (k == to)
      break;
  }
  *begin = from < to ? from : to;
  *end = (from < to ? to : from) + 1;
  int32_t first = *begin, second = *begin + (step > 0 ? total - count : count);
  for (int32_t k = *begin; k < *end; ++k) {
    int32_t op = o->order[k];
    bool early = o->chosen[op] == (step < 0);
    o->window[early ? first++ : second++] = op;
  }
  return count < total;
}

static void forget(memory_order *o, int32_t begin, int32_t end) {
  for (int32_t k = begin; k < end; ++k)
    o->chosen[o->order[k]] = 0;
}

/* Draws where an op moves to: mostly near, sometimes anywhere. */
static int32_t choose_target(braid_memory_annealing *a, int32_t from, int32_t ops) {
  static const double lengths[] = {3, 12, 50, 200};
  double drawn = draw_exponential(&a->random),
         length = 1 + drawn * lengths[draw_below(&a->random, 4)];
  int32_t far = length < ops ? (int32_t)length : ops;
  int32_t to = draw(&a->random) >> 63 ? from + far : from - far;
  return to < 0 ? 0 : to >= ops ? ops - 1 : to;
}

static void anneal_order(memory_order *o, braid_memory_annealing *a, double end) {
  int32_t ops = o->m->ops;
  excess whole = excess_of(o, 0, ops, a->goal, a->peak);
  double temperature = a->hot;
  double cooling = pow(a->cold / a->hot, (double)MOVES_PER_LOOK / (double)(a->moves + 1));
  for (int64_t move = 0; move < a->moves && a->peak > a->target; ++move) {
    if (move % MOVES_PER_LOOK == 0) {
      temperature *= cooling;
      if (a->done >= a->most || clock_seconds() > end)
        return;
    }
    int32_t from = (int32_t)draw_below(&a->random, ops), to = choose_target(a, from, ops);
    if (from == to)
      continue;
    a->done += MOVE_PLACES + abs(to - from);
    int32_t begin, stop;
    if (!choose(o, from, to, &begin, &stop)) {
      forget(o, begin, stop);
      continue;
    }
    excess before = excess_of(o, begin, stop, a->goal, a->peak);
    int32_t *old = o->old;
    memcpy(old + begin, o->order + begin, (size_t)(stop - begin) * sizeof *old);
    apply_window(o, begin, stop);
    excess after = excess_of(o, begin, stop, a->goal, a->peak);
    double worse = after.over - before.over;
    if (worse > 0 && worse > draw_tolerance(&a->random, temperature)) {
      memcpy(o->window + begin, old + begin, (size_t)(stop - begin) * sizeof *old);
      apply_window(o, begin, stop);
      forget(o, begin, stop);
      continue;
    }
    forget(o, begin, stop);
    whole.over += worse;
    whole.full += after.full - before.full;
    if (!whole.full) {
      a->done += ops;
      memcpy(a->best, o->order, (size_t)ops * sizeof *a->best);
      a->peak = reset_order(o);
      whole = excess_of(o, 0, ops, a->goal, a->peak);
    }
  }
}

int32_t braid_anneal_memory(const braid_memory *memory, braid_memory_annealing *a) {
  double end = clock_seconds() + a->seconds;
  memory_order o;
  bool has_memory = open_order(&o, memory);
  if (has_memory && memory->ops) {
    memcpy(o.order, a->best, (size_t)memory->ops * sizeof *o.order);
    a->peak = reset_order(&o);
    a->done = memory->ops;
    anneal_order(&o, a, end);
  }
  close_order(&o);
  return has_memory ? 0 : BRAID_OUT_OF_MEMORY;
}

/* The remaining work of a list schedule. */
typedef struct {
  int32_t *missing; /* by op: ops that must run before it */
  int32_t *left;    /* by tensor: users that are not scheduled */
  int32_t *ready;
  double *since; /* by op: less where it became ready later, with its chance */
} list_state;

static int64_t growth(const braid_memory *m, const list_state *l, int32_t op) {
  int64_t bytes = m->made[op];
  for (int32_t at = m->touches.begin[op]; at < m->touches.begin[op + 1]; ++at)
    if (l->left[m->touches.item[at]] == 1)
      bytes -= m->size[m->touches.item[at]];
  return bytes;
}

static void run_list(const braid_memory *m, list_state *l, double depth, double noise,
                     uint64_t *random, int32_t *order) {
  int32_t ready = 0;
  for (int32_t op = 0; op < m->ops; ++op) {
    l->missing[op] = m->before.begin[op + 1] - m->before.begin[op];
    l->since[op] = noise * draw_positive(random);
    if (!l->missing[op])
      l->ready[ready++] = op;
  }
  for (int32_t t = 0; t < m->tensors; ++t)
    l->left[t] = m->users.begin[t + 1] - m->users.begin[t];
  for (int32_t done = 0; ready; ++done) {
    int32_t best = 0;
    double least = INFINITY;
    for (int32_t k = 0; k < ready; ++k) {
      double score = (double)growth(m, l, l->ready[k]) + l->since[l->ready[k]];
      if (score < least) {
        least = score;
        best = k;
      }
    }
    int32_t op = l->ready[best];
    l->ready[best] = l->ready[--ready];
    order[done] = op;
    for (int32_t at = m->touches.begin[op]; at < m->touches.begin[op + 1]; ++at)
      --l->left[m->touches.item[at]];
    for (int32_t at = m->after.begin[op]; at < m->after.begin[op + 1]; ++at) {
      int32_t after = m->after.item[at];
      if (!--l->missing[after]) {
        l->since[after] -= depth * (double)done;
        l->ready[ready++] = after;
      }
    }
  }
}

int64_t braid_list_by_memory(const braid_memory *memory, double depth, double noise,
                             uint64_t *random, int32_t *order) {
  size_t ops = (size_t)memory->ops + 1, tensors = (size_t)memory->tensors + 1;
  list_state l = {calloc(ops, sizeof(int32_t)), calloc(tensors, sizeof(int32_t)),
                  calloc(ops, sizeof(int32_t)), calloc(ops, sizeof(double))};
  memory_order o;
  bool has_memory = open_order(&o, memory) && l.missing && l.left && l.ready && l.since;
  int64_t peak = BRAID_OUT_OF_MEMORY;
  if (has_memory) {
    run_list(memory, &l, depth, noise, random, order);
    memcpy(o.order, order, (size_t)memory->ops * sizeof *order);
    peak = reset_order(&o);
  }
  free(l.missing);
  free(l.left);
  free(l.ready);
  free(l.since);
  close_order(&o);
  return peak;
}
