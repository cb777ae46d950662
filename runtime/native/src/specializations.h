/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Code of an open model for some sizes, beside that for all.
 */
#ifndef BRAID_SPECIALIZATIONS_H
#define BRAID_SPECIALIZATIONS_H

#include "internal.h"

/* The specializations of one context that have run. */
typedef struct braid_specializations braid_specializations;

/* How many a model has: descriptors before version 15 do not say. */
int64_t braid_specialization_count(const braid_model_v2 *descriptor);

/* The first specialization of a descriptor that the runtime cannot rely on, -1 where all are right.
 */
int64_t braid_find_wrong_specialization(const braid_model_v2 *descriptor);

/* Makes a model of each specialization, which shares the weights of `model`; returns false, with
 * the error set, without memory. */
bool braid_specializations_load(braid_model_t *model);

/* NULL is allowed for what was not loaded. */
void braid_specializations_unload(braid_model_t *model);

/* Creates the table for a context of `model`; none of them have run. NULL and the error set without
 * memory. */
braid_specializations *braid_specializations_create(const braid_model_t *model);

/* The context of specialization `index`; NULL for one that has not run. */
braid_context_t *braid_specializations_context(const braid_specializations *own, int64_t index);

/* NULL is allowed. */
void braid_specializations_close(braid_specializations *own);

/* Chooses the specialization that runs at the sizes of the context's dims, and tells it the shapes
 * of inputs and the sizes that their elements are; `chosen` is NULL where none does. It counts and
 * is observed as the context. False and the error set without memory, or where it does not run at
 * the shapes. */
bool braid_specializations_choose(braid_context_t *context);

/* Gives back what the next run can allocate again. */
void braid_specializations_trim(braid_specializations *own);

#endif
