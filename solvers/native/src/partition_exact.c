/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Branch and bound over the groups in topological order: assigned groups stay, so loads only grow,
 * and the remaining groups count with their least work on any device.
 */
#include "clock.h"
#include "device_loads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  device_loads loads;
  int32_t *order; /* groups by their first op */
  double *rest;   /* by place in `order`: least work of the groups from there on, on all devices */
  int32_t *groups_on; /* by device */
  int32_t *best;
  double cost;
  double end;
  int64_t visited;
  bool late;
} partition_tree;

/* No completion of what is placed costs less. */
static double partition_bound(partition_tree *t, int32_t place) {
  const braid_partition *p = t->loads.p;
  count_starts(&t->loads);
  double largest = 0, sum = t->rest[place];
  for (int32_t k = 0; k < p->single; ++k) {
    double load = load_of(&t->loads, k);
    largest = load > largest ? load : largest;
    sum += load;
  }
  return p->sum ? sum : fmax(largest, sum / p->single);
}

/* Whether a device, or each that a replica is on, has memory for so many bytes more. */
static bool has_room(const partition_tree *t, int32_t device, double bytes) {
  const braid_partition *p = t->loads.p;
  if (device < p->single)
    return used_of(&t->loads, device) + bytes <= p->capacity[device];
  const braid_lists *members = &p->members;
  int32_t replica = device - p->single;
  for (int32_t i = members->begin[replica]; i < members->begin[replica + 1]; ++i)
    if (used_of(&t->loads, members->item[i]) + bytes > p->capacity[members->item[i]])
      return false;
  return true;
}

static void partition_visit(partition_tree *t, int32_t place) {
  const braid_partition *p = t->loads.p;
  if (place == p->groups) {
    double cost = cost_of_loads(&t->loads);
    if (cost < t->cost) {
      t->cost = cost;
      memcpy(t->best, t->loads.device, (size_t)p->groups * sizeof *t->best);
    }
    return;
  }
  if (!(++t->visited & 255) && clock_seconds() > t->end)
    t->late = true;
  int32_t group = t->order[place];
  double bounds[64];
  for (int32_t k = 0; k < p->devices; ++k) {
    bounds[k] = INFINITY;
    bool repeats = false; /* an empty device like an earlier one that is empty too */
    for (int32_t d = p->alike[k]; d < k && !t->groups_on[k]; ++d)
      repeats |= p->alike[d] == p->alike[k] && !t->groups_on[d];
    if (repeats || isinf(p->work[(int64_t)group * p->devices + k]) ||
        !has_room(t, k, p->bytes[group]))
      continue;
    put_group(&t->loads, group, k);
    bounds[k] = partition_bound(t, place + 1);
    take_group(&t->loads, group);
  }
  for (;;) {
    int32_t next = 0;
    for (int32_t k = 1; k < p->devices; ++k)
      next = bounds[k] < bounds[next] ? k : next;
    if (bounds[next] >= t->cost || t->late)
      return;
    bounds[next] = INFINITY;
    put_group(&t->loads, group, next);
    ++t->groups_on[next];
    partition_visit(t, place + 1);
    --t->groups_on[next];
    take_group(&t->loads, group);
  }
}

/* Groups by their first op, and the least work of those from each on. */
static void order_groups(partition_tree *t, bool *seen) {
  const braid_partition *p = t->loads.p;
  int32_t count = 0;
  for (int32_t op = 0; op < p->ops; ++op)
    if (!seen[p->group_of[op]]) {
      seen[p->group_of[op]] = true;
      t->order[count++] = p->group_of[op];
    }
  t->rest[count] = 0;
  while (count--) {
    double least = INFINITY;
    for (int32_t k = 0; k < p->devices; ++k)
      least = fmin(least, p->work[(int64_t)t->order[count] * p->devices + k] * copies_on(p, k));
    t->rest[count] = t->rest[count + 1] + least;
  }
}

int32_t braid_partition_exact(const braid_partition *p, double seconds, int32_t *device,
                              double *cost) {
  partition_tree t = {.best = device, .cost = *cost, .end = clock_seconds() + seconds};
  size_t groups = (size_t)p->groups;
  t.order = malloc((groups + 1) * sizeof *t.order);
  t.rest = malloc((groups + 1) * sizeof *t.rest);
  t.groups_on = calloc((size_t)p->devices + 1, sizeof *t.groups_on);
  bool *seen = calloc(groups + 1, sizeof *seen);
  int32_t result = BRAID_OUT_OF_MEMORY;
  if (t.order && t.rest && t.groups_on && seen && device_loads_open(&t.loads, p)) {
    order_groups(&t, seen);
    partition_visit(&t, 0);
    device_loads_close(&t.loads);
    *cost = t.cost;
    result = !t.late;
  }
  free(t.order);
  free(t.rest);
  free(t.groups_on);
  free(seen);
  return result;
}
