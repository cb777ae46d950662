/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, MOST_UNITS = 64 };

static const int64_t MAGIC = 0x4e414c504e445242; /* "BRDNPLAN" */

/* A plan, and the streams and kernels of its functions. */
typedef struct reader {
  plan_reader plan;
  npu_program *made;
  const braid_device_v1 *device;
} reader;

static int64_t within(reader *in, int64_t least, int64_t most) {
  return braid_plan_number(&in->plan, least, most, "a number is out of range");
}

static double positive(reader *in) {
  int64_t bits = braid_plan_word(&in->plan);
  double value;
  memcpy(&value, &bits, sizeof value);
  if (!in->plan.failed && !(value >= 0 && value < 1e30))
    braid_plan_fail(&in->plan, "a rate or time is out of range");
  return value;
}

static void *array(reader *in, int64_t count, size_t each) {
  return braid_plan_array(&in->plan, count, each);
}

static int64_t count(reader *in) { return braid_plan_count(&in->plan); }

static void name(reader *in, char text[NPU_NAME]) { braid_plan_name(&in->plan, text, NPU_NAME); }

static const npu_kernel *find_kernel(reader *in, const char *wanted) {
  for (int64_t i = 0; i < in->made->kernel_count && !in->plan.failed; ++i)
    if (strcmp(in->made->kernels[i].name, wanted) == 0)
      return &in->made->kernels[i];
  braid_plan_fail(&in->plan, "there is no such kernel");
  return NULL;
}

/* ---- Places ---- */

static void place(reader *in, plan_place *read) { braid_plan_place(&in->plan, read, PLAN_OWN); }

static void check_inside(reader *in, const plan_place *own, int64_t bytes, bool written) {
  braid_plan_check_inside(&in->plan, own, bytes);
  if (written && (own->space == PLAN_WEIGHTS || own->space == PLAN_INPUT))
    braid_plan_fail(&in->plan, "it writes to an input or to weights");
}

/* ---- Steps ---- */

static void result(reader *in, npu_step *step, npu_result *made) {
  char called[NPU_NAME];
  name(in, called);
  made->kernel = called[0] != '\0' ? find_kernel(in, called) : NULL;
  made->tensor_count = count(in);
  made->tensors = array(in, made->tensor_count, sizeof *made->tensors);
  for (int64_t i = 0; i < made->tensor_count && !in->plan.failed; ++i)
    made->tensors[i] = within(in, 0, (int64_t)step->stream.tensor_count - 1);
  place(in, &made->place);
  if (in->plan.failed)
    return;
  const npu_kernel *kernel = made->kernel;
  bool fits = kernel == NULL
                  ? made->tensor_count == 1
                  : kernel->operand_count == made->tensor_count && kernel->result_count == 1;
  for (int64_t i = 0; fits && kernel != NULL && i < made->tensor_count; ++i)
    fits = (uint64_t)kernel->bytes[i] == step->stream.tensor_bytes[made->tensors[i]];
  if (!fits)
    braid_plan_fail(&in->plan, "a result is made of other tensors than its kernel takes");
  else
    check_inside(in, &made->place,
                 kernel != NULL ? kernel->bytes[made->tensor_count]
                                : (int64_t)step->stream.tensor_bytes[made->tensors[0]],
                 true);
}

static void play(reader *in, npu_step *step) {
  int64_t number = within(in, 0, PLAN_MOST), place_of = -1;
  for (int64_t i = 0, seen = 0; i < in->device->code_count; ++i)
    if (strcmp(in->device->codes[i].kind, "stream") == 0 && seen++ == number)
      place_of = i;
  if (place_of < 0) {
    braid_plan_fail(&in->plan, "there is no stream of that number");
    return;
  }
  const braid_code_v1 *code = &in->device->codes[place_of];
  char reason[NPU_ERROR] = "";
  npu_stream *stream = &step->stream;
  if (!npu_read_stream(stream, code->data, code->bytes, &in->made->chip, reason) ||
      !npu_simulate(&step->timeline, stream, &in->made->chip, reason)) {
    braid_plan_fail(&in->plan, reason);
    return;
  }
  step->kernels = array(in, stream->kernel_count, sizeof *step->kernels);
  for (uint32_t i = 0; i < stream->kernel_count && !in->plan.failed; ++i) {
    char wanted[NPU_NAME + 24];
    snprintf(wanted, sizeof wanted, "%lld.%s", (long long)number, stream->kernels[i]);
    step->kernels[i] = find_kernel(in, wanted);
  }
  if (!in->plan.failed && !npu_check_kernels(stream, step->kernels, reason))
    braid_plan_fail(&in->plan, reason);
  step->place_count = within(in, stream->tensor_count, stream->tensor_count);
  step->places = array(in, step->place_count, sizeof *step->places);
  bool *stored = array(in, step->place_count, sizeof *stored);
  for (uint32_t i = 0; i < stream->instruction_count && !in->plan.failed; ++i)
    if (stream->instructions[i].kind == NPU_STORE)
      for (uint64_t k = 0; k < stream->instructions[i].access.tensor_count; ++k)
        stored[stream->instructions[i].access.tensors[k]] = true;
  for (int64_t i = 0; i < step->place_count && !in->plan.failed; ++i) {
    place(in, &step->places[i]);
    check_inside(in, &step->places[i], (int64_t)stream->tensor_bytes[i], stored[i]);
  }
  free(stored);
  step->result_count = count(in);
  step->results = array(in, step->result_count, sizeof *step->results);
  for (int64_t i = 0; i < step->result_count && !in->plan.failed; ++i)
    result(in, step, &step->results[i]);
}

static void call(reader *in, npu_step *step) {
  char called[NPU_NAME];
  name(in, called);
  const npu_kernel *kernel = find_kernel(in, called);
  if (in->plan.failed)
    return;
  step->kernels = array(in, 1, sizeof *step->kernels);
  step->place_count = kernel->operand_count + kernel->result_count;
  within(in, step->place_count, step->place_count);
  step->places = array(in, step->place_count, sizeof *step->places);
  if (!in->plan.failed)
    step->kernels[0] = kernel;
  for (int64_t i = 0; i < step->place_count && !in->plan.failed; ++i) {
    place(in, &step->places[i]);
    check_inside(in, &step->places[i], kernel->bytes[i], i >= kernel->operand_count);
  }
}

static void copy(reader *in, npu_step *step) {
  step->place_count = 2;
  step->places = array(in, 2, sizeof *step->places);
  for (int i = 0; i < 2 && !in->plan.failed; ++i)
    place(in, &step->places[i]);
  step->bytes = within(in, 0, INT64_MAX);
  for (int i = 0; i < 2 && !in->plan.failed; ++i)
    check_inside(in, &step->places[i], step->bytes, i == 0);
}

static void function(reader *in) {
  char text[NPU_NAME];
  name(in, text);
  const braid_model_v2 *model = in->made->model;
  int64_t number = braid_plan_function(&in->plan, text);
  if (in->plan.failed || number == model->function_count) {
    braid_plan_fail(&in->plan, "there is no such function");
    return;
  }
  npu_function *made = &in->made->functions[number];
  in->plan.function = &model->functions[number];
  made->step_count = count(in);
  made->steps = array(in, made->step_count, sizeof *made->steps);
  for (int64_t i = 0; i < made->step_count && !in->plan.failed; ++i) {
    npu_step *step = &made->steps[i];
    step->kind = (npu_step_kind)within(in, NPU_PLAY, NPU_COPY);
    if (step->kind == NPU_PLAY)
      play(in, step);
    else if (step->kind == NPU_CALL)
      call(in, step);
    else
      copy(in, step);
  }
  in->plan.function = NULL;
}

static void chip(reader *in, npu_chip *made) {
  made->memory_bytes = (uint64_t)within(in, 0, INT64_MAX / 4);
  made->fetch = positive(in);
  made->unit_count = (uint32_t)within(in, 1, MOST_UNITS);
  made->units = array(in, made->unit_count, sizeof *made->units);
  for (uint32_t i = 0; i < made->unit_count && !in->plan.failed; ++i) {
    made->units[i].executes = (uint32_t)within(in, 0, 15);
    made->units[i].rate = positive(in);
    made->units[i].startup = positive(in);
    made->units[i].port = within(in, -1, MOST_UNITS - 1);
  }
  made->port_count = (uint32_t)within(in, 0, MOST_UNITS);
  made->bandwidths = array(in, made->port_count, sizeof *made->bandwidths);
  for (uint32_t i = 0; i < made->port_count && !in->plan.failed; ++i)
    made->bandwidths[i] = positive(in);
  for (uint32_t i = 0; i < made->unit_count && !in->plan.failed; ++i)
    if (made->units[i].port >= (int64_t)made->port_count)
      braid_plan_fail(&in->plan, "there is no such port");
}

static const braid_code_v1 *code_of(const braid_device_v1 *device, const char *kind) {
  for (int64_t i = 0; i < device->code_count; ++i)
    if (strcmp(device->codes[i].kind, kind) == 0)
      return &device->codes[i];
  return NULL;
}

static bool load_kernels(npu_program *made, const braid_device_v1 *device, char *error) {
  const braid_code_v1 *code = code_of(device, "stream-kernels");
  if (code == NULL)
    return true; /* Functions that only copy have no kernels. */
  const char *problem = "code of kind 'stream-kernels' has no kernels";
  const int64_t *length = NULL;
  made->library = braid_load_code(code->data, (size_t)code->bytes);
  if (made->library != NULL) {
    made->kernels = dlsym(made->library, "braid_npu_kernels");
    length = dlsym(made->library, "braid_npu_kernel_count");
  } else {
    problem = braid_last_error();
  }
  if (made->kernels == NULL || length == NULL) {
    snprintf(error, BRAID_DEVICE_ERROR, "%s", problem);
    return false;
  }
  made->kernel_count = *length;
  return true;
}

/* Reads all of the plan, which is for each of the device's functions. */
static void read_plan(reader *in) {
  const braid_model_v2 *model = in->made->model;
  if (braid_plan_word(&in->plan) != MAGIC || braid_plan_word(&in->plan) != VERSION)
    braid_plan_fail(&in->plan, "it is of another version; compile the model again");
  chip(in, &in->made->chip);
  for (int64_t i = count(in); i > 0 && !in->plan.failed; --i)
    function(in);
  for (int64_t i = 0; i < model->function_count && !in->plan.failed; ++i)
    if (model->functions[i].device == in->plan.device && in->made->functions[i].steps == NULL) {
      in->plan.function = &model->functions[i];
      braid_plan_fail(&in->plan, "there is nothing");
    }
}

npu_program *npu_load(const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  const braid_model_v2 *described = model->model;
  const braid_device_v1 *device = &described->devices[model->device];
  const braid_code_v1 *code = code_of(device, "stream-plan");
  npu_program *made = calloc(1, sizeof *made);
  npu_function *functions = calloc((size_t)described->function_count + 1, sizeof *functions);
  if (made == NULL || functions == NULL || code == NULL) {
    free(made);
    free(functions);
    snprintf(error, BRAID_DEVICE_ERROR, "%s",
             code != NULL ? "out of memory" : "the model has no plan of its streams");
    return NULL;
  }
  *made = (npu_program){.model = described, .weights = model->weights, .functions = functions};
  reader in = {.plan = {.at = code->data,
                        .end = (const uint8_t *)code->data + code->bytes,
                        .model = described,
                        .device = model->device,
                        .of = "streams",
                        .error = error,
                        .size = BRAID_DEVICE_ERROR},
               .made = made,
               .device = device};
  if (load_kernels(made, device, error)) {
    read_plan(&in);
    if (!in.plan.failed)
      return made;
  }
  npu_unload(made);
  return NULL;
}

static void free_step(npu_step *step) {
  npu_free_stream(&step->stream);
  free(step->timeline.events);
  free(step->kernels);
  free(step->places);
  for (int64_t i = 0; step->results != NULL && i < step->result_count; ++i)
    free(step->results[i].tensors);
  free(step->results);
}

void npu_unload(npu_program *program) {
  for (int64_t f = 0; f < program->model->function_count; ++f) {
    npu_function *own = &program->functions[f];
    for (int64_t i = 0; own->steps != NULL && i < own->step_count; ++i)
      free_step(&own->steps[i]);
    free(own->steps);
  }
  free(program->functions);
  free(program->chip.units);
  free(program->chip.bandwidths);
  braid_unload_code(program->library);
  free(program);
}
