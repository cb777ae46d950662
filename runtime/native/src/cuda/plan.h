/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The plan of a device's functions, code of the kind "gpu-plan": the ordered launches of each, with
 * their parts of memory. Names and places are as in plan_reader.h:
 *
 *   plan      = magic, version, number of functions, then each function
 *   function  = name, number of steps, then each step
 *   step      = 0, name of the entry, name of the one for buffers of which any does not begin at a
 *               multiple of 16 bytes (the same if it takes them), blocks, threads, bytes of dynamic
 *               shared memory, number of arguments, then each argument        launches a kernel
 *             | 1, place it copies to, place it copies from, bytes   copies
 *   argument  = 0, place, bytes                                      the address of a buffer
 *             | 1, place, bytes, type, rank, swizzle, extents, strides, box   a tensor map
 *
 * Strides are bytes, one fewer than extents, whose first runs fastest.
 */
#ifndef BRAID_CUDA_PLAN_H
#define BRAID_CUDA_PLAN_H

#include "../plan_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_NAME = 160, PLAN_RANK = 5, PLAN_ENTRIES = 2, PLAN_ALIGNMENT = 16 };

typedef struct plan_tensor {
  int64_t type, rank, swizzle; /* as CUDA numbers them */
  uint64_t extents[PLAN_RANK], strides[PLAN_RANK];
  uint32_t box[PLAN_RANK];
} plan_tensor;

typedef struct plan_argument {
  plan_place place;
  int64_t bytes;
  plan_tensor *tensor; /* NULL for an address */
} plan_argument;

typedef struct plan_step {
  bool copies;
  char entries[PLAN_ENTRIES][PLAN_NAME]; /* the usual entry, and the one for unaligned buffers */
  int64_t blocks, threads, shared_bytes;
  int64_t argument_count;
  plan_argument *arguments; /* of a copy: its destination and its source */
} plan_step;

typedef struct plan_function {
  int64_t number; /* of the model's functions */
  int64_t step_count;
  plan_step *steps;
} plan_function;

typedef struct plan {
  int64_t function_count;
  plan_function *functions;
} plan;

/* Reads the plan of the functions of `model`'s device, and checks that they use no memory but their
 * own. NULL, and why in `error`, where something is wrong. */
plan *braid_cuda_read_plan(const braid_device_model *model, const void *data, int64_t bytes,
                           char *error, size_t size);
void braid_cuda_free_plan(plan *plan);

#endif /* BRAID_CUDA_PLAN_H */
