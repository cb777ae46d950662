/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Simulated annealing (S. Kirkpatrick, C. Gelatt, M. Vecchi, "Optimization by simulated
 * annealing", Science 1983) of orders: in a window, an op is moved with what it needs to the front
 * or with what needs it to the end.
 */
#include "random_search.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

enum {
  LONGEST = 256, /* ops of the longest window */
  RESET = 256    /* changes after which the schedule is made anew */
};

static int32_t below(braid_annealing *a, int32_t count) {
  return (int32_t)draw_below(&a->random, count);
}

/* A window anywhere, or about where the busiest unit waits. */
static int32_t choose_window(const braid_timeline *t, braid_annealing *a, int32_t *count) {
  static const double scales[] = {2, 8, 32};
  int32_t ops = t->chip->ops, longest = ops < LONGEST ? ops : LONGEST;
  double drawn = draw_exponential(&a->random), length = 2 + drawn * scales[below(a, 3)];
  *count = length < longest ? (int32_t)length : longest;
  int32_t last = ops - *count;
  int64_t waiting = t->waiting[t->blocks - 1];
  if (draw(&a->random) >> 63 || !waiting)
    return below(a, last + 1);
  int64_t wanted = (int64_t)(draw_positive(&a->random) * (double)waiting);
  int32_t block = 0;
  while (block < t->blocks - 1 && t->waiting[block] < wanted)
    ++block;
  int32_t middle = block * SPACING + below(a, 4 * SPACING) - 2 * SPACING;
  int32_t begin = middle - *count / 2;
  return begin < 0 ? 0 : begin > last ? last : begin;
}

/* Scratch of a search. */
typedef struct {
  int32_t *ops;    /* a window in another order */
  int32_t *chosen; /* by op: the last move that took it along */
  int32_t move;
} scratch;

/* Moves the last op of a window with its dependences to the front, or the first op with its
 * dependents to the end. Returns whether that changes the order of ops for which it makes a
 * difference. */
static bool reorder(const braid_chip *chip, const int32_t *window, int32_t count, bool front,
                    scratch *s) {
  const braid_lists *needs = front ? &chip->before : &chip->after;
  int32_t chosen = ++s->move, place = front ? 0 : count - 1;
  s->chosen[window[count - 1 - place]] = chosen;
  for (int32_t i = 0; i < count; ++i) {
    int32_t op = window[front ? count - 1 - i : i];
    if (s->chosen[op] == chosen)
      for (int32_t j = needs->begin[op]; j < needs->begin[op + 1]; ++j)
        s->chosen[needs->item[j]] = chosen;
  }
  int32_t next = 0;
  for (int32_t pass = 0; pass < 2; ++pass)
    for (int32_t i = 0; i < count; ++i)
      if ((s->chosen[window[i]] == chosen) == (front == !pass))
        s->ops[next++] = window[i];
  int32_t old = 0, new = 0;
  for (;; ++old, ++new) {
    while (old < count && !chip->moves[window[old]])
      ++old;
    while (new < count && !chip->moves[s->ops[new]])
      ++new;
    if (old == count)
      return false;
    if (window[old] != s->ops[new])
      return true;
  }
}

/* Makes the schedule anew, of the order at hand or, where that is better, keeps it as the best. */
static void settle(braid_timeline *t, braid_annealing *a) {
  memcpy(t->window, t->schedule.order, (size_t)t->chip->ops * sizeof *t->window);
  int64_t value = braid_timeline_reset(t, t->window);
  if (value >= 0 && value < a->value) {
    a->value = value;
    memcpy(a->best, t->window, (size_t)t->chip->ops * sizeof *a->best);
  }
}

static bool is_done(const braid_annealing *a) {
  return a->done >= a->moves || a->value <= a->target;
}

int32_t braid_anneal(braid_timeline *t, braid_annealing *a, int64_t moves) {
  size_t ops = (size_t)t->chip->ops + 1;
  scratch s = {calloc(ops, sizeof *s.ops), calloc(ops, sizeof *s.chosen), 0};
  if (!s.ops || !s.chosen)
    t->machine.out_of_memory = true;
  int32_t changes = 0;
  for (; moves > 0 && !is_done(a) && !t->machine.out_of_memory; --moves, ++a->done) {
    int32_t count, begin = choose_window(t, a, &count);
    const int32_t *window = t->schedule.order + begin;
    bool front = draw(&a->random) >> 63;
    double part = (double)a->done / (double)a->moves;
    double heat = a->hot > 0 ? cooled(a->hot, a->cold, part) : 0;
    double limit = (double)t->value + draw_tolerance(&a->random, heat);
    if (!reorder(t->chip, window, count, front, &s))
      continue;
    if (!timeline_change(t, begin, count, s.ops, (int64_t)limit))
      continue;
    if (t->value < a->value || ++changes % RESET == 0)
      settle(t, a);
  }
  free(s.ops);
  free(s.chosen);
  if (t->machine.out_of_memory)
    return BRAID_OUT_OF_MEMORY;
  if (!is_done(a))
    return 0;
  settle(t, a);
  return 1;
}
