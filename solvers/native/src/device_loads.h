/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the groups on each device take there, kept up to date as groups come and go.
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

/* Seconds of a device with its starts, as counted last. */
static inline double load_of(const device_loads *s, int32_t device) {
  return s->load[device] + s->p->start[device] * s->starts[device];
}

/* The largest load, or their sum; counts starts. */
double cost_of_loads(device_loads *s);

/* How much more memory the groups need than there is, as parts of that, added up. */
double excess_of_loads(const device_loads *s);

#endif
