/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "device_loads.h"

#include <stdlib.h>
#include <string.h>

bool device_loads_open(device_loads *s, const braid_partition *p) {
  size_t devices = (size_t)p->devices, cells = (size_t)p->values * devices;
  *s = (device_loads){.p = p};
  for (int32_t k = 0; k < p->devices; ++k)
    s->has_starts |= p->start[k] > 0;
  size_t segments = s->has_starts ? (size_t)p->ops * devices : 0;
  s->device = malloc(((size_t)p->groups + 1) * sizeof *s->device);
  s->load = calloc(devices + 1, sizeof *s->load);
  s->used = calloc(devices + 1, sizeof *s->used);
  s->readers = calloc(cells + 1, sizeof *s->readers);
  s->read_by = calloc((size_t)p->values + 1, sizeof *s->read_by);
  s->starts = calloc(devices + 1, sizeof *s->starts);
  s->segments = malloc((segments + 1) * sizeof *s->segments);
  if (!s->device || !s->load || !s->used || !s->readers || !s->read_by || !s->starts ||
      !s->segments) {
    device_loads_close(s);
    return false;
  }
  for (int32_t g = 0; g < p->groups; ++g)
    s->device[g] = NOWHERE;
  return true;
}

void device_loads_close(device_loads *s) {
  free(s->device);
  free(s->load);
  free(s->used);
  free(s->readers);
  free(s->read_by);
  free(s->starts);
  free(s->segments);
}

/* Adds or takes away (`sign`) what a value that a group on `k` makes costs by where it is read. */
static void add_source(device_loads *s, int32_t value, int32_t k, double sign) {
  const braid_partition *p = s->p;
  int64_t row = (int64_t)value * p->devices;
  for (int32_t d = 0; d < p->devices; ++d)
    if (d != k && s->readers[row + d])
      s->load[d] += sign * p->receive[row + d];
  if (s->read_by[value] > s->readers[row + k])
    s->load[k] += sign * p->send[row + k];
}

/* The same for the first or only reader on `k`, while it is not counted. */
static void add_reader(device_loads *s, int32_t value, int32_t k, double sign) {
  const braid_partition *p = s->p;
  int64_t row = (int64_t)value * p->devices;
  int32_t from = s->device[p->source[value]];
  if (from == NOWHERE || from == k)
    return;
  if (!s->readers[row + k])
    s->load[k] += sign * p->receive[row + k];
  if (s->read_by[value] == s->readers[row + from])
    s->load[from] += sign * p->send[row + from];
}

void put_group(device_loads *s, int32_t group, int32_t device) {
  const braid_partition *p = s->p;
  s->load[device] += p->work[(int64_t)group * p->devices + device];
  s->used[device] += p->bytes[group];
  for (int32_t i = p->values_of.begin[group]; i < p->values_of.begin[group + 1]; ++i) {
    int32_t value = p->values_of.item[i];
    if (p->source[value] == group) {
      add_source(s, value, device, 1);
    } else {
      add_reader(s, value, device, 1);
      ++s->readers[(int64_t)value * p->devices + device];
      ++s->read_by[value];
    }
  }
  s->device[group] = device;
}

void take_group(device_loads *s, int32_t group) {
  const braid_partition *p = s->p;
  int32_t device = s->device[group];
  s->load[device] -= p->work[(int64_t)group * p->devices + device];
  s->used[device] -= p->bytes[group];
  for (int32_t i = p->values_of.begin[group]; i < p->values_of.begin[group + 1]; ++i) {
    int32_t value = p->values_of.item[i];
    if (p->source[value] == group) {
      add_source(s, value, device, -1);
    } else {
      --s->readers[(int64_t)value * p->devices + device];
      --s->read_by[value];
      add_reader(s, value, device, -1);
    }
  }
  s->device[group] = NOWHERE;
}

void count_starts(device_loads *s) {
  const braid_partition *p = s->p;
  if (!s->has_starts)
    return;
  int32_t devices = p->devices;
  memset(s->starts, 0, (size_t)devices * sizeof *s->starts);
  for (int32_t op = 0; op < p->ops; ++op) {
    int32_t here = s->device[p->group_of[op]];
    double *mine = s->segments + (int64_t)op * devices, own = here != NOWHERE ? p->runs[op] : 0;
    memset(mine, 0, (size_t)devices * sizeof *mine);
    for (int32_t i = p->operands.begin[op]; i < p->operands.begin[op + 1]; ++i) {
      int32_t other = p->operands.item[i], there = s->device[p->group_of[other]];
      const double *theirs = s->segments + (int64_t)other * devices;
      for (int32_t k = 0; k < devices; ++k)
        mine[k] = mine[k] > theirs[k] ? mine[k] : theirs[k];
      if (here != NOWHERE) {
        double count = theirs[here] + (there != here && there != NOWHERE ? p->runs[op] : 0);
        own = own > count ? own : count;
      }
    }
    if (here != NOWHERE && mine[here] < own)
      mine[here] = own;
    for (int32_t k = 0; k < devices; ++k)
      s->starts[k] = s->starts[k] > mine[k] ? s->starts[k] : mine[k];
  }
}

double cost_of_loads(device_loads *s) {
  count_starts(s);
  double largest = 0, sum = 0;
  for (int32_t k = 0; k < s->p->single; ++k) {
    double load = load_of(s, k);
    largest = load > largest ? load : largest;
    sum += load;
  }
  return s->p->sum ? sum : largest;
}

double excess_of_loads(const device_loads *s) {
  double excess = 0;
  for (int32_t k = 0; k < s->p->single; ++k) {
    double used = used_of(s, k);
    if (used > s->p->capacity[k])
      excess += s->p->capacity[k] > 0 ? used / s->p->capacity[k] - 1 : 1;
  }
  return excess;
}
