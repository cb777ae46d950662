/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Simulated annealing (S. Kirkpatrick, C. Gelatt, M. Vecchi, Science 1983) of which device runs
 * which group. Single groups move, two change places, and neighbours on one device move together,
 * since a value that is dear to move holds its readers. If the largest load is the objective, the
 * search minimizes a norm of the loads, so that reducing others pays, too.
 */
#include "clock.h"
#include "device_loads.h"
#include "random_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_REGION = 64, REFRESH = 1 << 16 };

typedef struct {
  device_loads loads;
  double scale;      /* seconds: the best cost so far */
  double penalty;    /* of an excess of 1, as a part of `scale` */
  int32_t squarings; /* the norm is of this power of 2 */
  uint64_t random;
  int32_t moved[LARGEST_REGION];
  int32_t from[LARGEST_REGION];
  int32_t count;
  int32_t *mark; /* by group: the last region that it was in */
  int32_t region;
} partition_search;

/* The objective, with the present starts. */
static double guide_of(partition_search *s, double excess) {
  const braid_partition *p = s->loads.p;
  count_starts(&s->loads);
  double sum = 0;
  for (int32_t k = 0; k < p->single; ++k) {
    double load = load_of(&s->loads, k) / s->scale;
    for (int32_t i = 0; i < s->squarings; ++i)
      load *= load;
    sum += load;
  }
  for (int32_t i = 0; i < s->squarings; ++i)
    sum = sqrt(sum);
  return sum + s->penalty * excess;
}

static bool can_run(const braid_partition *p, int32_t group, int32_t device) {
  return !isinf(p->work[(int64_t)group * p->devices + device]);
}

static void move_group(partition_search *s, int32_t group, int32_t device) {
  s->moved[s->count] = group;
  s->from[s->count++] = s->loads.device[group];
  take_group(&s->loads, group);
  put_group(&s->loads, group, device);
}

static void move_back(partition_search *s) {
  while (s->count) {
    --s->count;
    take_group(&s->loads, s->moved[s->count]);
    put_group(&s->loads, s->moved[s->count], s->from[s->count]);
  }
}

/* A group that shares a value with `group`, or `group`. */
static int32_t neighbour_of(partition_search *s, int32_t group) {
  const braid_partition *p = s->loads.p;
  int32_t begin = p->values_of.begin[group], count = p->values_of.begin[group + 1] - begin;
  if (!count)
    return group;
  int32_t value = p->values_of.item[begin + draw_below(&s->random, count)];
  int32_t first = p->readers.begin[value], readers = p->readers.begin[value + 1] - first;
  int64_t chosen = draw_below(&s->random, readers + 1);
  return chosen == readers ? p->source[value] : p->readers.item[first + chosen];
}

/* Moves `group` and up to `size` groups around it on the same device. */
static void move_region(partition_search *s, int32_t group, int32_t device, int64_t size) {
  int32_t from = s->loads.device[group], next = 0;
  ++s->region;
  s->mark[group] = s->region;
  move_group(s, group, device);
  for (int64_t tries = 4 * size; s->count < size && tries > 0; --tries) {
    int32_t other = neighbour_of(s, s->moved[draw_below(&s->random, 4) ? s->count - 1 : next]);
    if (s->mark[other] == s->region || s->loads.device[other] != from ||
        !can_run(s->loads.p, other, device)) {
      next = (int32_t)draw_below(&s->random, s->count);
      continue;
    }
    s->mark[other] = s->region;
    move_group(s, other, device);
  }
}

/* A group that shares with `group` a value that is dear to move, and is not on its device: of
 * three draws the dearest. */
static int32_t torn_from(partition_search *s, int32_t group) {
  const braid_partition *p = s->loads.p;
  int32_t begin = p->values_of.begin[group], count = p->values_of.begin[group + 1] - begin;
  int32_t chosen = NOWHERE, device = s->loads.device[group];
  double dearest = 0;
  for (int32_t tries = 0; tries < 3 && count; ++tries) {
    int32_t value = p->values_of.item[begin + draw_below(&s->random, count)];
    int32_t first = p->readers.begin[value], readers = p->readers.begin[value + 1] - first;
    bool makes = p->source[value] == group;
    int32_t other =
        makes ? p->readers.item[first + draw_below(&s->random, readers)] : p->source[value];
    int64_t row = (int64_t)value * p->devices;
    double dear = p->receive[row + s->loads.device[other]] + p->send[row + device] +
                  p->receive[row + device] + p->send[row + s->loads.device[other]];
    if (s->loads.device[other] == device || s->mark[other] == s->region || dear <= dearest ||
        !can_run(p, other, device))
      continue;
    chosen = other;
    dearest = dear;
  }
  return chosen;
}

/* Moves `group`, then what that tears dear values from, up to `size` groups from any device. */
static void move_chain(partition_search *s, int32_t group, int32_t device, int64_t size) {
  ++s->region;
  s->mark[group] = s->region;
  move_group(s, group, device);
  for (int64_t tries = 2 * size; s->count < size && tries > 0; --tries) {
    int32_t other = torn_from(s, s->moved[draw_below(&s->random, s->count)]);
    if (other == NOWHERE)
      continue;
    s->mark[other] = s->region;
    move_group(s, other, device);
  }
}

/* A group, rather one of the busiest device. */
static int32_t choose_group(partition_search *s) {
  const braid_partition *p = s->loads.p;
  int32_t group = (int32_t)draw_below(&s->random, p->groups);
  if (p->sum || draw(&s->random) >> 63)
    return group;
  int32_t busiest = 0;
  for (int32_t k = 1; k < p->single; ++k)
    busiest = load_of(&s->loads, k) > load_of(&s->loads, busiest) ? k : busiest;
  for (int32_t tries = 0; tries < 8 && s->loads.device[group] != busiest; ++tries)
    group = (int32_t)draw_below(&s->random, p->groups);
  return group;
}

/* Changes something; returns whether it did. */
static bool change_devices(partition_search *s) {
  const braid_partition *p = s->loads.p;
  int32_t group = choose_group(s), from = s->loads.device[group];
  uint64_t kind = draw_below(&s->random, 8);
  if (kind < 2) { /* Two change places. */
    int32_t other = (int32_t)draw_below(&s->random, p->groups), to = s->loads.device[other];
    if (to == from || !can_run(p, group, to) || !can_run(p, other, from))
      return false;
    move_group(s, group, to);
    move_group(s, other, from);
    return true;
  }
  int32_t to = draw_below(&s->random, 4) ? s->loads.device[neighbour_of(s, group)]
                                         : (int32_t)draw_below(&s->random, p->devices);
  if (to == from)
    to = (int32_t)draw_below(&s->random, p->devices);
  if (to == from || !can_run(p, group, to))
    return false;
  int64_t size = kind < 6 ? 2 + draw_below(&s->random, 1 << draw_below(&s->random, 6)) : 1;
  size = size < LARGEST_REGION ? size : LARGEST_REGION;
  if (kind < 4)
    move_chain(s, group, to, size);
  else
    move_region(s, group, to, size);
  return true;
}

/* Recomputes loads, without accumulated rounding errors. */
static void refresh(partition_search *s) {
  const braid_partition *p = s->loads.p;
  for (int32_t k = 0; k < p->devices; ++k)
    s->loads.load[k] = s->loads.used[k] = 0;
  memset(s->loads.readers, 0, (size_t)p->values * (size_t)p->devices * sizeof *s->loads.readers);
  memset(s->loads.read_by, 0, (size_t)p->values * sizeof *s->loads.read_by);
  int32_t *device = s->loads.device;
  for (int32_t g = 0; g < p->groups; ++g) {
    int32_t there = device[g];
    device[g] = NOWHERE;
    /* Groups behind `g` are not there yet. */
    s->mark[g] = there;
  }
  for (int32_t g = 0; g < p->groups; ++g)
    put_group(&s->loads, g, s->mark[g]);
  memset(s->mark, 0, (size_t)p->groups * sizeof *s->mark);
  s->region = 0;
}

typedef struct {
  int32_t *device;
  double cost;
  double enough;
} best_partition;

/* One descent of the temperature, in parts of the best cost, for some seconds. */
static void cool(partition_search *s, best_partition *best, double hot, double seconds) {
  const braid_partition *p = s->loads.p;
  const double cold = 2e-5, begin = clock_seconds();
  double temperature = hot, excess = excess_of_loads(&s->loads), guide = guide_of(s, excess);
  for (int64_t step = 1;; ++step) {
    if (!(step & 255)) {
      double passed = (clock_seconds() - begin) / seconds;
      if (passed >= 1 || best->cost <= best->enough)
        return;
      temperature = cooled(hot, cold, passed);
      if (!(step & (REFRESH - 1))) {
        refresh(s);
        guide = guide_of(s, excess = excess_of_loads(&s->loads));
      }
    }
    s->count = 0;
    if (!change_devices(s))
      continue;
    double excess_after = excess_of_loads(&s->loads), after = guide_of(s, excess_after);
    if (after > guide && after - guide > draw_tolerance(&s->random, temperature)) {
      move_back(s);
      continue;
    }
    guide = after;
    excess = excess_after;
    if (excess == 0) {
      double cost = cost_of_loads(&s->loads);
      if (cost < best->cost) {
        best->cost = cost;
        memcpy(best->device, s->loads.device, (size_t)p->groups * sizeof *best->device);
      }
    }
  }
}

int32_t braid_partition_anneal(const braid_partition *p, double seconds, double enough,
                               uint64_t random, int32_t *device, double *cost) {
  partition_search s = {.random = random | 1, .penalty = 1};
  double end = clock_seconds() + seconds;
  s.mark = calloc((size_t)p->groups + 1, sizeof *s.mark);
  if (!s.mark || !device_loads_open(&s.loads, p)) {
    free(s.mark);
    return BRAID_OUT_OF_MEMORY;
  }
  for (int32_t g = 0; g < p->groups; ++g)
    put_group(&s.loads, g, device[g]);
  double first = cost_of_loads(&s.loads);
  best_partition best = {device, excess_of_loads(&s.loads) > 0 ? INFINITY : first, enough};
  static const double hottest[] = {0.2, 0.04, 0.008}; /* as parts of the cost */
  double part = 0.02 * seconds;
  while (p->groups && p->devices > 1 && best.cost > enough && clock_seconds() < end) {
    s.scale = isinf(best.cost) ? fmax(first, 1e-12) : fmax(best.cost, 1e-12);
    s.penalty = isinf(best.cost) ? s.penalty * 2 : s.penalty;
    s.squarings = p->sum ? 0 : 2 + (int32_t)draw_below(&s.random, 4);
    double left = end - clock_seconds();
    cool(&s, &best, hottest[draw_below(&s.random, 3)], left < 1.5 * part ? left : part);
    part *= 1.6;
    if (draw_below(&s.random, 2) && !isinf(best.cost))
      for (int32_t g = 0; g < p->groups; ++g)
        if (s.loads.device[g] != best.device[g]) {
          take_group(&s.loads, g);
          put_group(&s.loads, g, best.device[g]);
        }
  }
  *cost = best.cost;
  device_loads_close(&s.loads);
  free(s.mark);
  return 0;
}
