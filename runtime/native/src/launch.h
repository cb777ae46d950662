/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A launch of a function on a device, and the launches of a context.
 */
#ifndef BRAID_LAUNCH_H
#define BRAID_LAUNCH_H

#include "devices.h"

#include <setjmp.h>

/* The ticket of a launch that had ended when it was submitted. */
enum { BRAID_LAUNCH_ENDED = -1 };

/* The launches of the context on one device. */
typedef struct device_state {
  braid_env env; /* first: `fail` finds this from it */
  void *arena;
  int64_t nanoseconds;
  char failure[BRAID_DEVICE_ERROR];
} device_state;

typedef struct launch {
  braid_submission submission; /* first */
  struct braid_launches *launches;
  int64_t ticket;   /* of the context: the index, and above it how often that was used */
  int64_t capacity; /* of `lists`, in pointers */
  void **lists;     /* inputs, outputs, and the launches to wait for */
  int64_t dependents;
  unsigned float_mode; /* the caller's */
  uint64_t begin;      /* by the clock, where runs are traced; 0 elsewhere */
  bool ended, free;
} launch;

struct braid_launches {
  braid_model_t *model;
  braid_env *env; /* of the context */
  device_state *devices;
  void *own_arena; /* of functions that run where they are launched; NULL for none */
  launch **all;
  int64_t count, capacity;
  jmp_buf failed;
};

/* The launch of a ticket; NULL if it has ended and was freed. */
launch *braid_launch_find(braid_launches *launches, int64_t ticket);

/* A free one, or a new one, with memory for so many pointers; NULL without memory. */
launch *braid_launch_take(braid_launches *launches, int64_t pointers);

/* It has ended, and with it all that it waited for. */
void braid_launch_end(launch *one);

/* Frees it if it has ended and none that is under way depends on it. */
void braid_launch_release(launch *one);

#endif
