/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "program.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, VERSION = 1, MOST = 1 << 24, MOST_UNITS = 64 };

static const char MAGIC[] = "BRDNPLAN";

typedef struct reader {
  const uint8_t *at, *end;
  npu_program *made;
  const braid_device_v1 *device;
  const braid_function_v1 *function; /* whose steps are read */
  const npu_kernel *kernels;
  int64_t kernel_count;
  char *error;
  bool failed;
} reader;

static void fail(reader *in, const char *what) {
  if (!in->failed)
    snprintf(in->error, BRAID_DEVICE_ERROR, "%s%s%.80s", what, in->function != NULL ? ", in @" : "",
             in->function != NULL ? in->function->name : "");
  in->failed = true;
}

static int64_t word(reader *in) {
  if (in->failed || in->end - in->at < WORD) {
    fail(in, "the plan of its streams ends too soon");
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < WORD; ++i)
    value |= (uint64_t)in->at[i] << (8 * i);
  in->at += WORD;
  return (int64_t)value;
}

static int64_t within(reader *in, int64_t least, int64_t most) {
  int64_t value = word(in);
  if (in->failed || (value >= least && value <= most))
    return value;
  fail(in, "the plan of its streams has a number out of range");
  return least;
}

static double positive(reader *in) {
  int64_t bits = word(in);
  double value;
  memcpy(&value, &bits, sizeof value);
  if (!in->failed && !(value >= 0 && value < 1e30))
    fail(in, "the plan of its streams has a rate or time out of range");
  return value;
}

static void *array(reader *in, int64_t count, size_t each) {
  void *made = in->failed ? NULL : calloc((size_t)count + 1, each);
  if (made == NULL)
    fail(in, "out of memory");
  return made;
}

/* A number of things of at least a word each. */
static int64_t count(reader *in) { return within(in, 0, (in->end - in->at) / WORD); }

static void name(reader *in, char text[NPU_NAME]) {
  int64_t bytes = within(in, 0, NPU_NAME - 1), padded = (bytes + WORD - 1) / WORD * WORD;
  text[0] = '\0';
  if (in->failed || in->end - in->at < padded) {
    fail(in, "the plan of its streams ends too soon");
    return;
  }
  memcpy(text, in->at, (size_t)bytes);
  text[bytes] = '\0';
  in->at += padded;
}

static const npu_kernel *find_kernel(reader *in, const char *wanted) {
  for (int64_t i = 0; i < in->kernel_count && !in->failed; ++i)
    if (strcmp(in->kernels[i].name, wanted) == 0)
      return &in->kernels[i];
  fail(in, "there is no kernel that its streams or functions call");
  return NULL;
}

/* ---- Places ---- */

static int64_t room(const reader *in, const npu_place *place) {
  const braid_function_v1 *own = in->function;
  switch (place->space) {
  case NPU_ARENA:
    return own->arena_bytes;
  case NPU_WEIGHTS:
    return in->device->weights_bytes;
  case NPU_INPUT:
    return place->number < own->input_count ? own->bytes[place->number] : -1;
  case NPU_OUTPUT:
    return place->number < own->output_count ? own->bytes[own->input_count + place->number] : -1;
  default:
    return INT64_MAX;
  }
}

static void place(reader *in, npu_place *read) {
  read->space = within(in, NPU_ARENA, NPU_OWN);
  read->number = within(in, 0, MOST);
  read->offset = within(in, 0, INT64_MAX);
}

static void check_inside(reader *in, const npu_place *own, int64_t bytes, bool written) {
  if (in->failed)
    return;
  int64_t most = room(in, own);
  if (bytes < 0 || bytes > most || own->offset > most - bytes)
    fail(in, "a tensor of its streams lies outside of its memory");
  else if (written && own->space != NPU_OWN && own->space != NPU_ARENA && own->space != NPU_OUTPUT)
    fail(in, "its streams write to an input or to weights");
}

/* ---- Steps ---- */

static void result(reader *in, npu_step *step, npu_result *made) {
  char called[NPU_NAME];
  name(in, called);
  made->kernel = called[0] != '\0' ? find_kernel(in, called) : NULL;
  made->tensor_count = count(in);
  made->tensors = array(in, made->tensor_count, sizeof *made->tensors);
  for (int64_t i = 0; i < made->tensor_count && !in->failed; ++i)
    made->tensors[i] = within(in, 0, (int64_t)step->stream.tensor_count - 1);
  place(in, &made->place);
  if (in->failed)
    return;
  const npu_kernel *kernel = made->kernel;
  bool fits = kernel == NULL
                  ? made->tensor_count == 1
                  : kernel->operand_count == made->tensor_count && kernel->result_count == 1;
  for (int64_t i = 0; fits && kernel != NULL && i < made->tensor_count; ++i)
    fits = (uint64_t)kernel->bytes[i] == step->stream.tensor_bytes[made->tensors[i]];
  if (!fits)
    fail(in, "a result of its streams is made of other tensors than its kernel takes");
  else
    check_inside(in, &made->place,
                 kernel != NULL ? kernel->bytes[made->tensor_count]
                                : (int64_t)step->stream.tensor_bytes[made->tensors[0]],
                 true);
}

static void play(reader *in, npu_step *step) {
  int64_t number = within(in, 0, MOST), place_of = -1;
  for (int64_t i = 0, seen = 0; i < in->device->code_count; ++i)
    if (strcmp(in->device->codes[i].kind, "stream") == 0 && seen++ == number)
      place_of = i;
  if (place_of < 0) {
    fail(in, "there is no stream of that number");
    return;
  }
  const braid_code_v1 *code = &in->device->codes[place_of];
  char reason[NPU_ERROR] = "";
  npu_stream *stream = &step->stream;
  if (!npu_read_stream(stream, code->data, code->bytes, &in->made->chip, reason) ||
      !npu_simulate(&step->timeline, stream, &in->made->chip, reason)) {
    fail(in, reason);
    return;
  }
  step->kernels = array(in, stream->kernel_count, sizeof *step->kernels);
  for (uint32_t i = 0; i < stream->kernel_count && !in->failed; ++i) {
    char wanted[NPU_NAME + 24];
    snprintf(wanted, sizeof wanted, "%lld.%s", (long long)number, stream->kernels[i]);
    step->kernels[i] = find_kernel(in, wanted);
  }
  if (!in->failed && !npu_check_kernels(stream, step->kernels, reason))
    fail(in, reason);
  step->place_count = within(in, stream->tensor_count, stream->tensor_count);
  step->places = array(in, step->place_count, sizeof *step->places);
  bool *stored = array(in, step->place_count, sizeof *stored);
  for (uint32_t i = 0; i < stream->instruction_count && !in->failed; ++i)
    if (stream->instructions[i].kind == NPU_STORE)
      for (uint64_t k = 0; k < stream->instructions[i].access.tensor_count; ++k)
        stored[stream->instructions[i].access.tensors[k]] = true;
  for (int64_t i = 0; i < step->place_count && !in->failed; ++i) {
    place(in, &step->places[i]);
    check_inside(in, &step->places[i], (int64_t)stream->tensor_bytes[i], stored[i]);
  }
  free(stored);
  step->result_count = count(in);
  step->results = array(in, step->result_count, sizeof *step->results);
  for (int64_t i = 0; i < step->result_count && !in->failed; ++i)
    result(in, step, &step->results[i]);
}

static void call(reader *in, npu_step *step) {
  char called[NPU_NAME];
  name(in, called);
  const npu_kernel *kernel = find_kernel(in, called);
  if (in->failed)
    return;
  step->kernels = array(in, 1, sizeof *step->kernels);
  step->place_count = kernel->operand_count + kernel->result_count;
  within(in, step->place_count, step->place_count);
  step->places = array(in, step->place_count, sizeof *step->places);
  if (!in->failed)
    step->kernels[0] = kernel;
  for (int64_t i = 0; i < step->place_count && !in->failed; ++i) {
    place(in, &step->places[i]);
    check_inside(in, &step->places[i], kernel->bytes[i], i >= kernel->operand_count);
  }
}

static void copy(reader *in, npu_step *step) {
  step->place_count = 2;
  step->places = array(in, 2, sizeof *step->places);
  for (int i = 0; i < 2 && !in->failed; ++i)
    place(in, &step->places[i]);
  step->bytes = within(in, 0, INT64_MAX);
  for (int i = 0; i < 2 && !in->failed; ++i)
    check_inside(in, &step->places[i], step->bytes, i == 0);
}

static void function(reader *in) {
  char text[NPU_NAME];
  name(in, text);
  const braid_model_v2 *model = in->made->model;
  int64_t number = 0;
  while (number < model->function_count &&
         (strcmp(model->functions[number].name, text) != 0 ||
          &model->devices[model->functions[number].device] != in->device))
    ++number;
  if (in->failed || number == model->function_count) {
    fail(in, "the plan of its streams has an unknown function");
    return;
  }
  npu_function *made = &in->made->functions[number];
  in->function = &model->functions[number];
  made->step_count = count(in);
  made->steps = array(in, made->step_count, sizeof *made->steps);
  for (int64_t i = 0; i < made->step_count && !in->failed; ++i) {
    npu_step *step = &made->steps[i];
    step->kind = (npu_step_kind)within(in, NPU_PLAY, NPU_COPY);
    if (step->kind == NPU_PLAY)
      play(in, step);
    else if (step->kind == NPU_CALL)
      call(in, step);
    else
      copy(in, step);
  }
  in->function = NULL;
}

static void chip(reader *in, npu_chip *made) {
  made->memory_bytes = (uint64_t)within(in, 0, INT64_MAX / 4);
  made->fetch = positive(in);
  made->unit_count = (uint32_t)within(in, 1, MOST_UNITS);
  made->units = array(in, made->unit_count, sizeof *made->units);
  for (uint32_t i = 0; i < made->unit_count && !in->failed; ++i) {
    made->units[i].executes = (uint32_t)within(in, 0, 15);
    made->units[i].rate = positive(in);
    made->units[i].startup = positive(in);
    made->units[i].port = within(in, -1, MOST_UNITS - 1);
  }
  made->port_count = (uint32_t)within(in, 0, MOST_UNITS);
  made->bandwidths = array(in, made->port_count, sizeof *made->bandwidths);
  for (uint32_t i = 0; i < made->port_count && !in->failed; ++i)
    made->bandwidths[i] = positive(in);
  for (uint32_t i = 0; i < made->unit_count && !in->failed; ++i)
    if (made->units[i].port >= (int64_t)made->port_count)
      fail(in, "the plan of its streams names a port that is not there");
}

static const braid_code_v1 *code_of(const braid_device_v1 *device, const char *kind) {
  for (int64_t i = 0; i < device->code_count; ++i)
    if (strcmp(device->codes[i].kind, kind) == 0)
      return &device->codes[i];
  return NULL;
}

static void load_kernels(reader *in) {
  const braid_code_v1 *code = code_of(in->device, "stream-kernels");
  if (code == NULL || in->failed)
    return; /* Functions that only copy have none. */
  in->made->library = braid_load_code(code->data, (size_t)code->bytes);
  const int64_t *length = NULL;
  if (in->made->library != NULL) {
    in->kernels = dlsym(in->made->library, "braid_npu_kernels");
    length = dlsym(in->made->library, "braid_npu_kernel_count");
  }
  if (in->made->library == NULL)
    fail(in, braid_last_error());
  else if (in->kernels == NULL || length == NULL)
    fail(in, "code of kind 'stream-kernels' has no kernels");
  else
    in->kernel_count = *length;
}

npu_program *npu_load(const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  const braid_model_v2 *described = model->model;
  npu_program *made = calloc(1, sizeof *made);
  npu_function *functions = calloc((size_t)described->function_count + 1, sizeof *functions);
  if (made == NULL || functions == NULL) {
    free(made);
    free(functions);
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    return NULL;
  }
  *made = (npu_program){.model = described, .weights = model->weights, .functions = functions};
  reader in = {.made = made, .device = &described->devices[model->device], .error = error};
  const braid_code_v1 *plan = code_of(in.device, "stream-plan");
  if (plan == NULL || plan->bytes < WORD || memcmp(plan->data, MAGIC, WORD) != 0) {
    fail(&in, "there is no plan of its streams");
  } else {
    in.at = (const uint8_t *)plan->data + WORD;
    in.end = (const uint8_t *)plan->data + plan->bytes;
    if (word(&in) != VERSION)
      fail(&in, "the plan of its streams has another version");
    chip(&in, &made->chip);
    load_kernels(&in);
    for (int64_t i = count(&in); i > 0 && !in.failed; --i)
      function(&in);
  }
  for (int64_t i = 0; i < described->function_count && !in.failed; ++i)
    if (described->functions[i].device == model->device && functions[i].steps == NULL) {
      in.function = &described->functions[i];
      fail(&in, "there is no plan of its streams");
    }
  if (!in.failed)
    return made;
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
