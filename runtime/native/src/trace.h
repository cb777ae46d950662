/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The stored form of the events of a trace.
 */
#ifndef BRAID_TRACED_H
#define BRAID_TRACED_H

#include "observer.h"

typedef struct braid_traced {
  braid_trace_event event;
  const braid_env *owner; /* of kernels and their parts: the environment that they ran in */
} braid_traced;

struct braid_trace {
  braid_model_t *model;
  braid_traced *events;
  int64_t capacity;
  _Atomic int64_t added; /* those without room too */
  int64_t named;         /* events whose parts have the index of their kernel */
};

#endif
