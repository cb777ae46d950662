/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _POSIX_C_SOURCE 200809L
#include "devices.h"
#include "internal.h"
#include "phases.h"
#include "plans.h"
#include "specializations.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHTS_UNCHECKED, WEIGHTS_INTACT, WEIGHTS_DAMAGED };

static bool check_weights(const braid_model_v2 *descriptor, const void *weights, size_t bytes) {
  if (bytes < (uint64_t)descriptor->weights_bytes) {
    braid_set_error("the model's code reads %lld bytes of weights, there are %zu",
                    (long long)descriptor->weights_bytes, bytes);
    return false;
  }
  if (descriptor->weights_bytes > 0 &&
      (weights == NULL || (uintptr_t)weights % BRAID_WEIGHTS_ALIGN != 0)) {
    braid_set_error("the model's weights are at %p, expected a multiple of %d", weights,
                    BRAID_WEIGHTS_ALIGN);
    return false;
  }
  return true;
}

/* Takes over `library` where it succeeds. */
static braid_model_t *create_model(const braid_model_v2 *descriptor, const void *weights,
                                   size_t weights_bytes, void *library) {
  if (!braid_check_descriptor(descriptor) || !check_weights(descriptor, weights, weights_bytes))
    return NULL;
  braid_model_t *model = calloc(1, sizeof *model);
  if (model == NULL) {
    braid_set_error("out of memory");
    return NULL;
  }
  model->descriptor = descriptor;
  model->weights = (braid_section){weights, weights_bytes, 0};
  atomic_init(&model->references, 1);
  atomic_init(&model->weights_state, WEIGHTS_INTACT);
  if (!braid_expand_weights(descriptor, weights, &model->expanded) ||
      (descriptor->open != NULL && (model->plans = braid_plans_create(descriptor)) == NULL) ||
      !braid_devices_load(model) || !braid_phases_load(model) ||
      !braid_specializations_load(model)) {
    braid_specializations_unload(model);
    braid_phases_unload(model);
    braid_devices_unload(model);
    braid_plans_free(model->plans);
    free(model->expanded);
    free(model);
    return NULL;
  }
  model->library = library;
  return model;
}

braid_model_t *braid_model_of_part(braid_model_t *whole, const braid_model_v2 *descriptor) {
  braid_model_t *model = calloc(1, sizeof *model);
  if (model == NULL) {
    braid_set_error("out of memory");
    return NULL;
  }
  model->descriptor = descriptor;
  model->weights = whole->weights;
  model->expanded = whole->expanded;
  model->devices = descriptor->device_count > 0 ? whole->devices : NULL;
  model->is_part = true;
  atomic_init(&model->references, 1);
  atomic_init(&model->weights_state,
              WEIGHTS_INTACT); /* the context of the whole model checks them */
  if (descriptor->open != NULL && (model->plans = braid_plans_create(descriptor)) == NULL) {
    free(model);
    return NULL;
  }
  return model;
}

braid_model_t *braid_model_from_descriptor(const braid_model_v2 *descriptor, const void *weights,
                                           size_t weights_bytes) {
  return create_model(descriptor, weights, weights_bytes, NULL);
}

braid_model_t *braid_model_from_memory(const void *code, size_t size, const void *weights,
                                       size_t weights_bytes) {
  if (code == NULL) {
    braid_set_error("the model's code is NULL");
    return NULL;
  }
  void *library = braid_load_code(code, size);
  if (library == NULL)
    return NULL;
  braid_model_t *model =
      create_model(dlsym(library, "braid_model"), weights, weights_bytes, library);
  if (model == NULL)
    braid_unload_code(library);
  return model;
}

braid_model_t *braid_model_from_artifact(const void *data, size_t size, const char *name) {
  if (data == NULL || name == NULL) {
    braid_set_error(data == NULL ? "the artifact is NULL" : "the artifact's name is NULL");
    return NULL;
  }
  braid_container container;
  if (!braid_container_read(name, data, size, &container))
    return NULL;
  const braid_section *code = &container.sections[BRAID_SECTION_CODE];
  const braid_section *weights = &container.sections[BRAID_SECTION_WEIGHTS];
  braid_model_t *model =
      braid_model_from_memory(code->data, code->size, weights->data, weights->size);
  char *copy = strdup(name);
  if (model == NULL || copy == NULL) {
    if (model != NULL)
      braid_set_error("out of memory");
    free(copy);
    braid_model_close(model);
    return NULL;
  }
  model->name = copy;
  model->weights = *weights;
  atomic_store(&model->weights_state, WEIGHTS_UNCHECKED);
  return model;
}

braid_model_t *braid_model_open(const char *path) {
  size_t size = 0;
  const void *data = braid_map_file(path, &size);
  if (data == NULL)
    return NULL;
  braid_model_t *model = braid_model_from_artifact(data, size, path);
  if (model == NULL) {
    braid_unmap_file(data, size);
    return NULL;
  }
  model->file = data;
  model->file_bytes = size;
  return model;
}

/* Threads that run the model for the first time at once all make the check: none waits for another
 * one, which might not exist in a child after fork. */
bool braid_weights_are_intact(braid_model_t *model) {
  int state = atomic_load_explicit(&model->weights_state, memory_order_acquire);
  if (state == WEIGHTS_UNCHECKED) {
    bool intact = model->weights.data == NULL || braid_section_is_intact(&model->weights);
    state = intact ? WEIGHTS_INTACT : WEIGHTS_DAMAGED;
    atomic_store_explicit(&model->weights_state, state, memory_order_release);
  }
  if (state == WEIGHTS_DAMAGED)
    braid_set_error("'%s' is damaged: the digest of its weights is wrong", model->name);
  return state == WEIGHTS_INTACT;
}

const braid_model_v2 *braid_model_describe(const braid_model_t *model) {
  if (model == NULL)
    braid_set_error("the model is NULL");
  return model != NULL ? model->descriptor : NULL;
}

void braid_model_retain(braid_model_t *model) { atomic_fetch_add(&model->references, 1); }

void braid_model_close(braid_model_t *model) {
  if (model == NULL || atomic_fetch_sub(&model->references, 1) > 1)
    return;
  braid_specializations_unload(model);
  braid_phases_unload(model);
  braid_plans_free(model->plans);
  if (!model->is_part) {
    braid_devices_unload(model);
    free(model->expanded);
  }
  braid_unload_code(model->library);
  braid_unmap_file(model->file, model->file_bytes);
  free(model->name);
  free(model);
}
