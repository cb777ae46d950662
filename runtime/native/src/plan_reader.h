/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reads the compiler's plan of a device's functions: little-endian numbers of 64 bits, of the forms
 *
 *
 *   name    = number of bytes, the bytes, zeros up to a multiple of 8
 *   place   = memory (0 arena, 1 weights, 2 input, 3 output, 4 of its own), number, offset
 *
 * and checks that accesses stay within the memories of these functions.
 */
#ifndef BRAID_PLAN_READER_H
#define BRAID_PLAN_READER_H

#include "braid/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLAN_WORD = 8, PLAN_MOST = 1 << 24 /* things of a kind */ };

/* PLAN_OWN is private memory of a device, which only some devices have. */
typedef enum plan_space { PLAN_ARENA, PLAN_WEIGHTS, PLAN_INPUT, PLAN_OUTPUT, PLAN_OWN } plan_space;

typedef struct plan_place {
  int64_t space, number, offset;
} plan_place;

/* The bytes to read, and the position. `failed` once it has ended too soon, or is malformed:
 * numbers are then the least that are allowed. */
typedef struct plan_reader {
  const uint8_t *at, *end;
  const braid_model_v2 *model;
  int64_t device;
  const braid_function_v1 *function; /* whose steps are read, or NULL */
  const char *of;                    /* what the plan is of */
  char *error;                       /* of the first failure */
  size_t size;
  bool failed;
} plan_reader;

void braid_plan_fail(plan_reader *in, const char *what);

/* Reads a number; returns 0 if there is none. */
int64_t braid_plan_word(plan_reader *in);

/* Reads a number of `least` to `most`, or fails with `what`. */
int64_t braid_plan_number(plan_reader *in, int64_t least, int64_t most, const char *what);

/* Reads a number of things, each of which takes a word at least. */
int64_t braid_plan_count(plan_reader *in);

/* Reads a name into room for `size` bytes, with a zero at its end. */
void braid_plan_name(plan_reader *in, char *text, int64_t size);

/* Memory for so many items, all 0, and one more; NULL, and failed, where there is no memory. */
void *braid_plan_array(plan_reader *in, int64_t count, size_t each);

/* Reads a place in memories up to `last`. */
void braid_plan_place(plan_reader *in, plan_place *place, plan_space last);

/* Fails if bytes at an operand lie outside of the memory of the function that is read. */
void braid_plan_check_inside(plan_reader *in, const plan_place *place, int64_t bytes);

/* The index of the function of the reader's device with this name, or the number of the model's
 * functions if there is none. */
int64_t braid_plan_function(const plan_reader *in, const char *name);

#endif /* BRAID_PLAN_READER_H */
