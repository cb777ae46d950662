/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Runs of models whose data decide sizes: phases, one after the other.
 */
#ifndef BRAID_PHASES_H
#define BRAID_PHASES_H

#include "internal.h"

/* The state that the runs of all phases of one context use. */
typedef struct braid_phases braid_phases;

/* Makes a model of each phase, which shares the weights of `model`; returns false, with the error
 * set, without memory. */
bool braid_phases_load(braid_model_t *model);

/* NULL is allowed for what was not loaded. */
void braid_phases_unload(braid_model_t *model);

/* For a context of `model`; phases count in its counters. NULL and the error set without memory. */
braid_phases *braid_phases_create(braid_model_t *model, const braid_env *env);

/* The context of phase `index`. */
braid_context_t *braid_phases_context(const braid_phases *phases, int64_t index);

/* NULL is allowed. */
void braid_phases_close(braid_phases *phases);

/* Runs all phases on inputs of these shapes, asking `poll` whether to go on; returns false, with
 * the error set, if one fails. */
bool braid_phases_run(braid_phases *phases, void *const *inputs, const int64_t *const *shapes,
                      int (*poll)(void));

/* The output of this number of the last run, and its shape; NULL before a run has ended. */
const void *braid_phases_output(const braid_phases *phases, int64_t index);
const int64_t *braid_phases_output_shape(const braid_phases *phases, int64_t index);

/* Frees memory that the next run can allocate again; results are lost. */
void braid_phases_trim(braid_phases *phases);

#endif
