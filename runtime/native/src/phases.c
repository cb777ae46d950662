/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A phase is a model of its own: it has a plan for the sizes at hand, and an arena. Values between
 * phases are in memory of the context, which grows as runs need it.
 */
#include "phases.h"

#include "context.h"

#include <stdlib.h>
#include <string.h>

/* A value between phases, or an input of the model. */
typedef struct value {
  void *data;
  const int64_t *shape; /* NULL until it is there */
  void *memory;         /* from malloc; NULL for an input, and at first */
  size_t bytes;         /* of the memory */
} value;

struct braid_phases {
  const braid_model_v2 *model;
  const braid_phases_v1 *described;
  braid_context_t **contexts; /* one for each phase */
  value *values;
  void **buffers; /* places for the inputs and then the outputs of any phase */
  bool has_run;
};

/* ---- Models ---- */

bool braid_phases_load(braid_model_t *model) {
  const braid_phases_v1 *phases = model->descriptor->phases;
  if (phases == NULL)
    return true;
  model->phases = calloc((size_t)phases->count, sizeof *model->phases);
  bool made = model->phases != NULL;
  for (int64_t i = 0; made && i < phases->count; ++i) {
    model->phases[i] = braid_model_of_part(model, phases->phases[i].model);
    made = model->phases[i] != NULL;
  }
  if (model->phases == NULL)
    braid_set_error("out of memory");
  return made;
}

void braid_phases_unload(braid_model_t *model) {
  if (model->phases == NULL)
    return;
  for (int64_t i = 0; i < model->descriptor->phases->count; ++i)
    braid_model_close(model->phases[i]);
  free(model->phases);
  model->phases = NULL;
}

/* ---- Contexts ---- */

static size_t most_ports(const braid_phases_v1 *described) {
  int64_t most = 1;
  for (int64_t i = 0; i < described->count; ++i) {
    const braid_model_v2 *own = described->phases[i].model;
    most =
        own->input_count + own->output_count > most ? own->input_count + own->output_count : most;
  }
  return (size_t)most;
}

braid_context_t *braid_phases_context(const braid_phases *phases, int64_t index) {
  return phases->contexts[index];
}

braid_phases *braid_phases_create(braid_model_t *model, const braid_env *env) {
  const braid_phases_v1 *described = model->descriptor->phases;
  braid_phases *phases = calloc(1, sizeof *phases);
  bool made = phases != NULL;
  if (made) {
    phases->model = model->descriptor;
    phases->described = described;
    phases->contexts = calloc((size_t)described->count, sizeof *phases->contexts);
    phases->values = calloc((size_t)described->value_count + 1, sizeof *phases->values);
    phases->buffers = calloc(most_ports(described), sizeof *phases->buffers);
    made = phases->contexts != NULL && phases->values != NULL && phases->buffers != NULL;
  }
  if (!made)
    braid_set_error("out of memory for a context");
  for (int64_t i = 0; made && i < described->count; ++i) {
    phases->contexts[i] = braid_context_create_part(model->phases[i], env);
    made = phases->contexts[i] != NULL;
  }
  if (made)
    return phases;
  braid_phases_close(phases);
  return NULL;
}

static void free_values(braid_phases *phases) {
  phases->has_run = false;
  for (int64_t i = 0; phases->values != NULL && i < phases->described->value_count; ++i) {
    free(phases->values[i].memory);
    phases->values[i] = (value){NULL, NULL, NULL, 0};
  }
}

void braid_phases_close(braid_phases *phases) {
  if (phases == NULL)
    return;
  for (int64_t i = 0; phases->contexts != NULL && i < phases->described->count; ++i)
    braid_context_close_part(phases->contexts[i]);
  free_values(phases);
  free(phases->contexts);
  free(phases->values);
  free(phases->buffers);
  free(phases);
}

void braid_phases_trim(braid_phases *phases) {
  free_values(phases);
  for (int64_t i = 0; i < phases->described->count; ++i)
    braid_context_trim(phases->contexts[i]);
}

/* ---- Runs ---- */

static bool allocate(value *own, size_t bytes) {
  size_t lines = bytes / BRAID_WEIGHTS_ALIGN + 1;
  own->memory = aligned_alloc(BRAID_WEIGHTS_ALIGN, lines * BRAID_WEIGHTS_ALIGN);
  own->bytes = own->memory != NULL ? lines * BRAID_WEIGHTS_ALIGN : 0;
  return own->memory != NULL;
}

/* Gives a value memory of at least `bytes`, with undefined content; returns false, with the error
 * set, if there is none. Memory that grows does so by half, as far as there is as much. */
static bool reserve(value *own, size_t bytes, const char *name) {
  if (own->memory == NULL || own->bytes < bytes) {
    size_t ample = own->bytes + own->bytes / 2;
    free(own->memory);
    if (ample <= bytes || !allocate(own, ample))
      allocate(own, bytes);
  }
  own->data = own->memory;
  if (own->memory == NULL)
    braid_set_error("out of memory: value '%s' takes %zu bytes", name, bytes);
  return own->memory != NULL;
}

/* Gives a phase its inputs, and finds out what it will return. */
static bool shape_phase(braid_phases *phases, int64_t number, void **inputs) {
  const braid_phase_v1 *phase = &phases->described->phases[number];
  braid_context_t *context = phases->contexts[number];
  const braid_variant_v2 *variant;
  for (int64_t i = 0; i < phase->model->input_count; ++i) {
    const value *own = &phases->values[phase->inputs[i]];
    inputs[i] = own->data;
    if (braid_context_set_input_shape(context, i, own->shape) != 0)
      return false;
  }
  return braid_read_values(context, inputs) && braid_context_set_output_shapes(context, &variant);
}

static bool run_phase(braid_phases *phases, int64_t number, int (*poll)(void)) {
  const braid_phase_v1 *phase = &phases->described->phases[number];
  braid_context_t *context = phases->contexts[number];
  void **inputs = phases->buffers, **outputs = inputs + phase->model->input_count;
  if (!shape_phase(phases, number, inputs))
    return false;
  for (int64_t i = 0; i < phase->model->output_count; ++i) {
    const braid_tensor_v2 *output = &phase->model->outputs[i];
    value *own = &phases->values[phase->outputs[i]];
    own->shape = context->output_shapes[i];
    if (!reserve(own, braid_tensor_bytes(output, own->shape), output->name))
      return false;
    outputs[i] = own->data;
  }
  braid_context_set_poll(context, poll);
  return braid_context_run(context, inputs, outputs) == 0;
}

bool braid_phases_run(braid_phases *phases, void *const *inputs, const int64_t *const *shapes,
                      int (*poll)(void)) {
  phases->has_run = false;
  for (int64_t i = 0; i < phases->model->input_count; ++i) {
    phases->values[i].data = inputs[i];
    phases->values[i].shape = shapes[i];
  }
  for (int64_t i = 0; i < phases->described->count; ++i)
    if (!run_phase(phases, i, poll))
      return false;
  phases->has_run = true;
  return true;
}

static const value *output_of(const braid_phases *phases, int64_t index) {
  if (phases->has_run)
    return &phases->values[phases->described->outputs[index]];
  braid_set_error("data decide the shape of output '%s', which is known after a run",
                  phases->model->outputs[index].name);
  return NULL;
}

const void *braid_phases_output(const braid_phases *phases, int64_t index) {
  const value *own = output_of(phases, index);
  return own != NULL ? own->data : NULL;
}

const int64_t *braid_phases_output_shape(const braid_phases *phases, int64_t index) {
  const value *own = output_of(phases, index);
  return own != NULL ? own->shape : NULL;
}
