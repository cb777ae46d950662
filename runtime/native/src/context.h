/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Resources of a model's runs.
 */
#ifndef BRAID_CONTEXT_H
#define BRAID_CONTEXT_H

#include "internal.h"
#include "observer.h"
#include "plans.h"

/* Whether a run is to end, for all functions of its model. */
struct braid_watch {
  const braid_env *owner; /* of the thread that runs the model, which alone may ask */
  int (*poll)(void);      /* NULL where nobody is asked */
  uint64_t next;          /* when it is asked again */
  atomic_int stopped;
};

struct braid_context {
  braid_env env; /* first: `fail` finds the context from it */
  struct braid_watch watch;
  struct braid_observer observer;
  braid_model_t *model;
  void *arena; /* NULL until a run needs it, and where it was given back */
  int64_t arena_bytes;
  int64_t **input_shapes;
  int64_t **output_shapes;
  int64_t *sizes;   /* of the model's dims */
  int64_t *values;  /* those that elements of inputs are; -1 until they are read */
  braid_plan *plan; /* the last one of an open model; NULL at first */
  bool is_planned;  /* whether it is that for `input_shapes` */
  struct braid_size_counts *size_counts; /* NULL unless it is an open model that is profiled */
  struct braid_specializations *specializations; /* NULL unless it is an open model */
  braid_context_t *chosen; /* the one of these that runs at `input_shapes`; NULL where none does */
  braid_staging staging;
  braid_launches *launches;    /* NULL for a model without devices */
  struct braid_phases *phases; /* NULL for a model without phases */
  char failure[512];
};

/* A context of a part of the model of `env`: it runs on as many threads, counts where that does,
 * and is observed with it. NULL and the error set without memory. */
braid_context_t *braid_context_create_part(braid_model_t *part, const braid_env *env);

/* NULL is allowed. */
void braid_context_close_part(braid_context_t *context);

/* Visits a context, and those of the parts of its model that there are. NULL has none. */
void braid_context_each(braid_context_t *context, void (*visit)(braid_context_t *, void *),
                        void *argument);

/* Sets the error and returns true if there is none. */
bool braid_is_null(const void *pointer, const char *what);

/* Whether input `index` of a model can have this shape; false and the error set where it cannot. */
bool braid_check_input_shape(const braid_model_v2 *descriptor, int64_t index, const int64_t *shape);

/* Whether all inputs have sizes: those without a bound must be set. Returns false, with the error
 * set, if one has none. */
bool braid_has_sizes(const braid_context_t *context);

/* Reads the sizes in the elements of these inputs; returns false, with the error set, for an
 * invalid one. */
bool braid_read_values(braid_context_t *context, void *const *inputs);

/* Rows of sizes of tensors, preset to the upper bounds; NULL without memory. */
int64_t **braid_create_shapes(const braid_tensor_v2 *tensors, int64_t count);

/* Sets the shapes of the outputs by those of the inputs, where the model's code does not; of a
 * model with variants also the variant. False and the error set where it does not run at these. */
bool braid_context_set_output_shapes(braid_context_t *context, const braid_variant_v2 **variant);

#endif
