/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The device `npu-sim`: a chip that is programmed by instructions, in simulated time. A launch
 * plays the streams of its function (npu/execute.c): the results are computed by their instructions
 * from addresses on the chip, and the time is that of their units.
 */
#define _POSIX_C_SOURCE 200809L
#include "device_host.h"
#include "devices.h"
#include "npu/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

static uint8_t *address(const braid_submission *submission, const plan_place *place) {
  const npu_program *program = submission->program;
  switch (place->space) {
  case PLAN_ARENA:
    return (uint8_t *)submission->arena + place->offset;
  case PLAN_WEIGHTS:
    return (uint8_t *)(uintptr_t)program->weights + place->offset;
  case PLAN_INPUT:
    return (uint8_t *)submission->inputs[place->number] + place->offset;
  default:
    return (uint8_t *)submission->outputs[place->number] + place->offset;
  }
}

/* The results of a stream: the tensors outside of the chip when it has ended. */
static bool hand_on(const braid_submission *submission, const npu_step *step, uint8_t **tensors) {
  uint8_t **buffers = calloc((size_t)step->place_count + 2, sizeof *buffers);
  bool all = buffers != NULL;
  for (int64_t i = 0; i < step->result_count && all; ++i) {
    const npu_result *own = &step->results[i];
    uint8_t *to = address(submission, &own->place);
    if (own->kernel == NULL) {
      memmove(to, tensors[own->tensors[0]], step->stream.tensor_bytes[own->tensors[0]]);
      continue;
    }
    for (int64_t k = 0; k < own->tensor_count && k < step->place_count; ++k)
      buffers[k] = tensors[own->tensors[k]];
    buffers[own->tensor_count] = to;
    all = npu_call(own->kernel, buffers);
  }
  free(buffers);
  return all;
}

/* Tensors of a stream's own are poison until they are stored. */
static bool play(const braid_submission *submission, const npu_step *step, char error[NPU_ERROR]) {
  const npu_program *program = submission->program;
  uint8_t **tensors = calloc((size_t)step->place_count + 1, sizeof *tensors);
  bool there = tensors != NULL;
  for (int64_t i = 0; i < step->place_count && there; ++i) {
    if (step->places[i].space != PLAN_OWN) {
      tensors[i] = address(submission, &step->places[i]);
      continue;
    }
    tensors[i] = malloc(step->stream.tensor_bytes[i] + 1);
    there = tensors[i] != NULL;
    if (there)
      memset(tensors[i], 0xFF, step->stream.tensor_bytes[i]);
  }
  bool played = there && npu_execute(&step->stream, &step->timeline, &program->chip, step->kernels,
                                     tensors, error);
  played = played && hand_on(submission, step, tensors);
  for (int64_t i = 0; tensors != NULL && i < step->place_count; ++i)
    if (step->places[i].space == PLAN_OWN)
      free(tensors[i]);
  free(tensors);
  return played;
}

/* A kernel of the host, on tensors in place: they may be boxes inside of larger ones, whose other
 * bytes it neither reads nor writes. */
static bool call(const braid_submission *submission, const npu_step *step) {
  void **buffers = calloc((size_t)step->place_count + 1, sizeof *buffers);
  void *scratch = NULL;
  bool there =
      buffers != NULL &&
      posix_memalign(&scratch, ALIGN, (size_t)step->kernels[0]->scratch_bytes + ALIGN) == 0;
  if (there) {
    for (int64_t i = 0; i < step->place_count; ++i)
      buffers[i] = address(submission, &step->places[i]);
    buffers[step->place_count] = scratch;
    step->kernels[0]->call(buffers);
  }
  free(scratch);
  free(buffers);
  return there;
}

static void compute(braid_submission *submission) {
  const npu_program *program = submission->program;
  const npu_function *function = &program->functions[submission->function];
  char error[NPU_ERROR] = "out of memory";
  double seconds = 0;
  bool done = true;
  for (int64_t i = 0; i < function->step_count && done; ++i) {
    const npu_step *step = &function->steps[i];
    if (step->kind == NPU_PLAY)
      done = play(submission, step, error);
    else if (step->kind == NPU_CALL)
      done = call(submission, step);
    else
      memmove(address(submission, &step->places[0]), address(submission, &step->places[1]),
              (size_t)step->bytes);
    seconds += step->kind == NPU_PLAY ? step->timeline.seconds : 0;
  }
  submission->status = !done;
  if (!done)
    snprintf(submission->error, BRAID_DEVICE_ERROR, "%s", error);
  submission->nanoseconds = (int64_t)(1e9 * seconds + 0.5);
}

static void *open_npu(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)name;
  return braid_host_open(compute, error);
}

static void *load(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  (void)device;
  return npu_load(model, error);
}

static void unload(void *device, void *program) {
  (void)device;
  npu_unload(program);
}

const braid_device_plugin braid_plugin_npu_sim =
    BRAID_HOST_PLUGIN("npu-sim", open_npu, load, unload, 1);
