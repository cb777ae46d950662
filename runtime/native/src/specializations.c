/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A specialization is a separate open model, whose dims are those of the whole model without the
 * ones that it fixes. Its context is made when it runs first.
 */
#include "specializations.h"

#include "context.h"

#include <stdlib.h>

enum { FIRST_VERSION = 15, MOST = 1024 };

struct braid_specializations {
  const braid_model_t *model;
  braid_context_t *contexts[]; /* NULL for those that have not run */
};

int64_t braid_specialization_count(const braid_model_v2 *descriptor) {
  return descriptor->abi_version < FIRST_VERSION ? 0 : descriptor->specialization_count;
}

/* ---- Descriptors ---- */

/* Whether tensors are those of the whole model; some of its open dims may be fixed. */
static bool are_alike(int64_t count, const braid_tensor_v2 *own, const braid_tensor_v2 *whole) {
  for (int64_t i = 0; i < count; ++i) {
    if (own[i].dtype != whole[i].dtype || own[i].rank != whole[i].rank)
      return false;
    for (int64_t d = 0; d < own[i].rank; ++d)
      if (own[i].shape[d] != whole[i].shape[d] && whole[i].shape[d] != -1)
        return false;
  }
  return true;
}

static bool is_right(const braid_model_v2 *descriptor, const braid_specialization_v1 *special) {
  const braid_model_v2 *own = special->model;
  if (own == NULL || (special->sizes == NULL && descriptor->dim_count > 0) || own->run == NULL ||
      own->phases != NULL || !braid_has_devices_of(own, descriptor) || own->expanded_bytes != 0 ||
      own->counter_count != descriptor->counter_count ||
      own->weights_bytes > descriptor->weights_bytes || braid_specialization_count(own) != 0 ||
      !braid_check_descriptor(own) || own->input_count != descriptor->input_count ||
      own->output_count != descriptor->output_count)
    return false;
  for (int64_t dim = 0; dim < descriptor->dim_count; ++dim)
    if (special->sizes[dim] < -1)
      return false;
  return are_alike(own->input_count, own->inputs, descriptor->inputs) &&
         are_alike(own->output_count, own->outputs, descriptor->outputs);
}

int64_t braid_find_wrong_specialization(const braid_model_v2 *descriptor) {
  int64_t count = braid_specialization_count(descriptor);
  if (count == 0)
    return -1;
  if (count < 0 || count > MOST || descriptor->open == NULL || descriptor->specializations == NULL)
    return 0;
  for (int64_t i = 0; i < count; ++i)
    if (!is_right(descriptor, &descriptor->specializations[i]))
      return i;
  return -1;
}

/* ---- Models ---- */

bool braid_specializations_load(braid_model_t *model) {
  int64_t count = braid_specialization_count(model->descriptor);
  if (count == 0)
    return true;
  model->specialized = calloc((size_t)count, sizeof *model->specialized);
  bool made = model->specialized != NULL;
  if (!made)
    braid_set_error("out of memory");
  for (int64_t i = 0; made && i < count; ++i) {
    const braid_specialization_v1 *own = &model->descriptor->specializations[i];
    model->specialized[i] = braid_model_of_part(model, own->model);
    made = model->specialized[i] != NULL;
  }
  return made;
}

void braid_specializations_unload(braid_model_t *model) {
  int64_t count = model->specialized != NULL ? model->descriptor->specialization_count : 0;
  for (int64_t i = 0; i < count; ++i)
    braid_model_close(model->specialized[i]);
  free(model->specialized);
  model->specialized = NULL;
}

/* ---- Contexts ---- */

braid_specializations *braid_specializations_create(const braid_model_t *model) {
  size_t count = (size_t)braid_specialization_count(model->descriptor);
  braid_specializations *own = calloc(1, sizeof *own + count * sizeof *own->contexts);
  if (own == NULL)
    braid_set_error("out of memory for a context");
  else
    own->model = model;
  return own;
}

braid_context_t *braid_specializations_context(const braid_specializations *own, int64_t index) {
  return own->contexts[index];
}

void braid_specializations_close(braid_specializations *own) {
  int64_t count = own != NULL ? braid_specialization_count(own->model->descriptor) : 0;
  for (int64_t i = 0; i < count; ++i)
    braid_context_close_part(own->contexts[i]);
  free(own);
}

void braid_specializations_trim(braid_specializations *own) {
  int64_t count = braid_specialization_count(own->model->descriptor);
  for (int64_t i = 0; i < count; ++i)
    braid_context_trim(own->contexts[i]);
}

static bool fits(const braid_model_v2 *descriptor, const int64_t *wanted, const int64_t *sizes) {
  for (int64_t dim = 0; dim < descriptor->dim_count; ++dim)
    if (wanted[dim] >= 0 && wanted[dim] != sizes[dim])
      return false;
  return true;
}

/* Passes the sizes in elements of inputs, which `whole` has read, to `own`. */
static void tell_values(const braid_context_t *whole, braid_context_t *own) {
  const braid_open_v1 *from = whole->model->descriptor->open, *to = own->model->descriptor->open;
  for (int64_t i = 0; to != NULL && i < to->value_count; ++i)
    for (int64_t j = 0; j < from->value_count; ++j)
      if (from->values[j].input == to->values[i].input &&
          from->values[j].element == to->values[i].element && own->values[i] != whole->values[j]) {
        own->values[i] = whole->values[j];
        own->is_planned = false;
      }
}

bool braid_specializations_choose(braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  int64_t count = braid_specialization_count(descriptor), i = 0;
  while (i < count && !fits(descriptor, descriptor->specializations[i].sizes, context->sizes))
    ++i;
  context->chosen = NULL;
  if (i == count)
    return true;
  braid_context_t **own = &context->specializations->contexts[i];
  if (*own == NULL)
    *own = braid_context_create_part(context->model->specialized[i], &context->env);
  if (*own == NULL)
    return false;
  for (int64_t input = 0; input < descriptor->input_count; ++input)
    if (braid_context_set_input_shape(*own, input, context->input_shapes[input]) != 0)
      return false;
  tell_values(context, *own);
  context->chosen = *own;
  return true;
}
