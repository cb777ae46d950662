/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which device runs which group of ops. Called through braid/solvers/partition/native.py.
 */
#ifndef BRAID_PARTITION_H
#define BRAID_PARTITION_H

#include "chip_order.h"

/* Groups of ops that stay together, and the values between them. Times are seconds.
 *
 * The load of a device is the work of its groups, the time of each value that it receives from
 * another device or sends to any (once per value and direction), and its starts. The last devices
 * are replicas: a group on one of them is on each of several others, and adds to their loads and
 * memories. */
typedef struct {
  int32_t groups;
  int32_t devices; /* of which the last are replicas */
  int32_t single;  /* how many are not replicas */
  int32_t values;
  int32_t ops;
  int32_t sum;             /* whether loads add up, instead of the largest one counting */
  const double *work;      /* group × device, infinite where the device cannot run the group */
  const double *bytes;     /* by group: memory on the device that runs it */
  const double *capacity;  /* by device: bytes */
  const double *start;     /* by device: seconds of a start */
  const int32_t *alike;    /* by device: the first one with the same figures */
  const int32_t *source;   /* by value: the group that makes it */
  braid_lists readers;     /* by value: other groups, each once */
  const double *receive;   /* value × device */
  const double *send;      /* value × device */
  braid_lists values_of;   /* by group: what it makes and reads */
  const int32_t *group_of; /* by op, in topological order */
  const double *runs;      /* by op: its number of executions */
  braid_lists operands;    /* by op: ops before it */
  braid_lists members;     /* by replica, counted from 0: the devices that it is on */
  braid_lists also;        /* by device that is not a replica: the replicas that are on it */
} braid_partition;

/* Improves `device` (by group) for some seconds, or until it costs no more than `enough`. Writes
 * what that costs to `*cost`: infinite where no assignment within the memories was found. Returns
 * BRAID_OUT_OF_MEMORY, or 0. */
BRAID_API int32_t braid_partition_anneal(const braid_partition *p, double seconds, double enough,
                                         uint64_t random, int32_t *device, double *cost);

/* Looks for the best assignment below `*cost`, and writes it to `device` and `*cost`. Returns 1
 * where all were looked at, 0 where time ran out, or BRAID_OUT_OF_MEMORY. */
BRAID_API int32_t braid_partition_exact(const braid_partition *p, double seconds, int32_t *device,
                                        double *cost);

#endif
