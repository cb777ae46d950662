/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sizes as lists of steps, which `support/sizes/program.py` makes from size expressions. The
 * numbers of operations, and the computation of each step, are defined there.
 */
#ifndef BRAID_SIZES_H
#define BRAID_SIZES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct braid_size_step {
  int64_t operation;
  int64_t a, b, c; /* indices of earlier steps, or values as the operation says */
} braid_size_step;

typedef struct braid_size_program {
  int64_t step_count;
  const braid_size_step *steps;
  int64_t symbol_count;
  int64_t result_count;
  const int64_t *results; /* numbers of the steps that compute the sizes */
} braid_size_program;

/* Why a size has no value of 64 bits. */
enum {
  BRAID_SIZE_OVERFLOW = 1,
  BRAID_SIZE_DIVISION_BY_ZERO = 2,
  BRAID_SIZE_NO_INTEGER = 3, /* a float is not finite, or too large */
};

/* The value of a step. */
typedef struct braid_size_value {
  union {
    int64_t integer;
    double real;
  };
  int64_t failure; /* 0: there is a value */
} braid_size_value;

/* Tells whether every step means something, and uses earlier steps and symbols that there are. Only
 * such a program may be evaluated. */
bool braid_check_sizes(const braid_size_program *program);

/* Computes all sizes from the symbols' values, with room for the value of each step. Returns 0, or
 * the reason why the first failing size has no value, with its index in `failing`; `sizes` then
 * holds zeros for those without a value. */
int64_t braid_evaluate_sizes(const braid_size_program *program, const int64_t *symbols,
                             braid_size_value *values, int64_t *sizes, int64_t *failing);

#endif
