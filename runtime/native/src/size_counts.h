/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How often an open model ran at which sizes of its dims.
 */
#ifndef BRAID_SIZE_COUNTS_H
#define BRAID_SIZE_COUNTS_H

#include <stdint.h>

typedef struct braid_size_counts braid_size_counts;

/* Of a model with this many dims; NULL without memory. */
braid_size_counts *braid_size_counts_create(int64_t dims);

/* NULL is allowed. */
void braid_size_counts_free(braid_size_counts *counts);

/* Counts a run at the sizes of all dims. */
void braid_size_counts_add(braid_size_counts *counts, const int64_t *sizes);

/* NULL is allowed. */
void braid_size_counts_reset(braid_size_counts *counts);

/* As braid_context_profile_sizes. */
int64_t braid_size_counts_read(braid_size_counts *counts, int64_t capacity, int64_t *sizes,
                               uint64_t *runs, uint64_t *errors);

#endif
