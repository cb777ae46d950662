/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The plan of a model with open sizes for certain sizes of its dims.
 */
#ifndef BRAID_PLANS_H
#define BRAID_PLANS_H

#include "braid/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Immutable, and shared by contexts of any threads. */
typedef struct braid_plan {
  atomic_int references;
  size_t bytes; /* of this allocation */
  int64_t arena_bytes;
  const int64_t *dims;          /* sizes of the model's dims, for which it was made */
  const int64_t *sizes;         /* as `sizes` of braid_env */
  const int64_t *output_shapes; /* `rank` sizes of each output, output by output */
  int64_t numbers[];            /* the arrays to which the others point */
} braid_plan;

/* The plans of one model that were asked for last. */
typedef struct braid_plans braid_plans;

/* NULL and the error set where there is no memory. The descriptor is one of an open model, and was
 * checked. */
braid_plans *braid_plans_create(const braid_model_v2 *model);

/* NULL is allowed. Plans that somebody still holds stay. */
void braid_plans_free(braid_plans *plans);

/* The plan for these sizes of the model's dims, which the caller gives back. Returns NULL, with the
 * error set, if the model does not run at them, or without memory. */
braid_plan *braid_plans_find(braid_plans *plans, const int64_t *dims);

/* NULL is allowed. */
void braid_plan_release(braid_plan *plan);

/* Sets the error to a printf-style message and the sizes of the model's dims, and returns false. */
bool braid_fail_at(const braid_model_v2 *model, const int64_t *dims, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The alignment of a model's arenas, and of the buffers of open models in them. */
int64_t braid_arena_align(const braid_model_v2 *model);

/* ---- Placing buffers in an arena ---- */

/* When buffers are used: the same at all sizes. */
typedef struct braid_lifetimes {
  int64_t count;
  const braid_buffer_v1 *buffers;
  int32_t *by_first, *by_last; /* the orders by begin and by end; from one malloc */
  int32_t *others;             /* those that are live with each buffer at some time; from malloc,
                                * NULL where they are too many */
  int64_t *starts;             /* the start of each buffer's entries in `others`, and the end */
  int64_t orders;              /* how many of the orders by size there is time to try */
} braid_lifetimes;

/* False without memory. */
bool braid_lifetimes_read(braid_lifetimes *lifetimes, int64_t count,
                          const braid_buffer_v1 *buffers);

void braid_lifetimes_free(braid_lifetimes *lifetimes);

/* A buffer to be placed; those of high ranks come first. */
typedef struct braid_placement {
  double rank;
  int64_t number;
} braid_placement;

void braid_sort_placements(braid_placement *placements, int64_t count);

/* Scratch memory of packing. */
size_t braid_packing_bytes(int64_t count);

/* Places buffers of these bytes such that buffers that are live at the same time do not overlap,
 * and returns the total bytes. `room` has braid_packing_bytes, for integers. False where these are
 * more than 63 bits; buffers of 0 bytes are anywhere. */
bool braid_pack(const braid_lifetimes *lifetimes, const int64_t *bytes, void *room,
                int64_t *offsets, int64_t *total);

/* The ways in which that is done. In the order of time; returns the most bytes that are live at
 * once. */
size_t braid_time_packing_bytes(int64_t count);
bool braid_pack_by_time(const braid_lifetimes *lifetimes, const int64_t *bytes, void *room,
                        int64_t *offsets, int64_t *total, int64_t *least);

/* The largest first, where `others` is known: by bytes times the square root of the time, by bytes,
 * or by their product with the time. False where it takes more than 63 bits. */
enum { BRAID_SIZE_ORDERS = 3 };
size_t braid_size_packing_bytes(int64_t count);
bool braid_pack_by_size(const braid_lifetimes *lifetimes, const int64_t *bytes, int order,
                        void *room, int64_t *offsets, int64_t *total);

#endif
