/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The loads of the groups on each device, kept up to date as groups are added and removed.
 */
#ifndef BRAID_DEVICE_LOADS_H
#define BRAID_DEVICE_LOADS_H

#include "partition.h"

#include <stdbool.h>

enum { NOWHERE = -1 };

typedef struct {
  const braid_partition *p;
  int32_t *device;  /* by group, or NOWHERE */
  double *load;     /* by device, without starts */
  double *used;     /* by device: bytes */
  int32_t *readers; /* value × device: groups there that read the value */
  int32_t *read_by; /* by value: groups anywhere that read it */
  double *starts;   /* by device, of the last `count_starts` */
  double *segments; /* op × device: scratch of `count_starts` */
  bool has_starts;
} device_loads;

/* No group on any device. Returns whether there is memory. */
bool device_loads_open(device_loads *s, const braid_partition *p);
void device_loads_close(device_loads *s);

void put_group(device_loads *s, int32_t group, int32_t device);
void take_group(device_loads *s, int32_t group);

/* Writes to `starts` how often each device begins at the least: the most stretches of its ops, with
 * others between, on a path of the graph; each as often as the op runs that it begins with. */
void count_starts(device_loads *s);

/* Seconds of what is on a device alone, with its starts, as counted last. */
static inline double own_load(const device_loads *s, int32_t device) {
  return s->load[device] + s->p->start[device] * s->starts[device];
}

/* The same with the replicas that are on it; of one that is not a replica. */
static inline double load_of(const device_loads *s, int32_t device) {
  const braid_lists *also = &s->p->also;
  double load = own_load(s, device);
  for (int32_t i = also->begin[device]; i < also->begin[device + 1]; ++i)
    load += own_load(s, also->item[i]);
  return load;
}

/* Bytes on a device that is not a replica, likewise. */
static inline double used_of(const device_loads *s, int32_t device) {
  const braid_lists *also = &s->p->also;
  double used = s->used[device];
  for (int32_t i = also->begin[device]; i < also->begin[device + 1]; ++i)
    used += s->used[also->item[i]];
  return used;
}

/* On how many devices that are not replicas a group is. */
static inline int32_t copies_on(const braid_partition *p, int32_t device) {
  int32_t replica = device - p->single;
  return replica < 0 ? 1 : p->members.begin[replica + 1] - p->members.begin[replica];
}

/* The largest load, or their sum; counts starts. */
double cost_of_loads(device_loads *s);

/* How much more memory the groups need than there is, as parts of that, added up. */
double excess_of_loads(const device_loads *s);

#endif
