/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _POSIX_C_SOURCE 200809L
#include "plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSION = 2, MOST_THREADS = 1024 };

static const int64_t MAGIC = 0x4e414c5044494152; /* "RAIDPLAN" */

static void place(plan_reader *in, plan_place *read) { braid_plan_place(in, read, PLAN_OUTPUT); }

static void tensor(plan_reader *in, plan_argument *own) {
  plan_tensor *made = own->tensor = braid_plan_array(in, 1, sizeof *made);
  if (in->failed)
    return;
  made->type = braid_plan_number(in, 0, 12, "a tensor map has an unknown type");
  made->rank = braid_plan_number(in, 1, PLAN_RANK, "a tensor map has too many dims");
  made->swizzle = braid_plan_number(in, 0, 3, "a tensor map has an unknown swizzle");
  for (int64_t d = 0; d < made->rank; ++d)
    made->extents[d] =
        (uint64_t)braid_plan_number(in, 1, (int64_t)1 << 32, "an extent is out of range");
  for (int64_t d = 0; d + 1 < made->rank; ++d)
    made->strides[d] =
        (uint64_t)braid_plan_number(in, 16, ((int64_t)1 << 40) - 1, "a stride is out of range");
  for (int64_t d = 0; d < made->rank; ++d)
    made->box[d] = (uint32_t)braid_plan_number(in, 1, 256, "a box is out of range");
}

static void argument(plan_reader *in, plan_argument *own) {
  bool mapped = braid_plan_number(in, 0, 1, "there is no such kind of argument") == 1;
  place(in, &own->place);
  own->bytes = braid_plan_number(in, 0, INT64_MAX, "a size is negative");
  if (mapped)
    tensor(in, own);
  braid_plan_check_inside(in, &own->place, own->bytes);
}

static void copy(plan_reader *in, plan_step *step) {
  step->copies = true;
  step->arguments = braid_plan_array(in, 2, sizeof *step->arguments);
  if (in->failed)
    return;
  step->argument_count = 2;
  place(in, &step->arguments[0].place);
  place(in, &step->arguments[1].place);
  step->arguments[0].bytes = step->arguments[1].bytes =
      braid_plan_number(in, 0, INT64_MAX, "a size is negative");
  braid_plan_check_inside(in, &step->arguments[0].place, step->arguments[0].bytes);
  braid_plan_check_inside(in, &step->arguments[1].place, step->arguments[1].bytes);
}

static void launch(plan_reader *in, plan_step *step) {
  for (int i = 0; i < PLAN_ENTRIES; ++i)
    braid_plan_name(in, step->entries[i], PLAN_NAME);
  step->blocks = braid_plan_number(in, 1, INT_MAX, "a launch has no blocks, or too many");
  step->threads = braid_plan_number(in, 1, MOST_THREADS, "a block has no threads, or too many");
  step->shared_bytes = braid_plan_number(in, 0, INT_MAX, "a size is negative");
  step->argument_count = braid_plan_number(in, 0, PLAN_MOST, "a launch has too many arguments");
  step->arguments = braid_plan_array(in, step->argument_count, sizeof *step->arguments);
  for (int64_t i = 0; !in->failed && i < step->argument_count; ++i)
    argument(in, &step->arguments[i]);
}

static void function(plan_reader *in, plan_function *own) {
  char symbol[PLAN_NAME];
  braid_plan_name(in, symbol, PLAN_NAME);
  /* Devices that take turns have the same plan; one of them may run only a part of it. */
  own->number = braid_plan_function(in, symbol);
  if (own->number < in->model->function_count)
    in->function = &in->model->functions[own->number];
  own->step_count = braid_plan_number(in, 0, PLAN_MOST, "a function has too many steps");
  own->steps = braid_plan_array(in, own->step_count, sizeof *own->steps);
  for (int64_t i = 0; !in->failed && i < own->step_count; ++i)
    if (braid_plan_number(in, 0, 1, "there is no such kind of step") == 1)
      copy(in, &own->steps[i]);
    else
      launch(in, &own->steps[i]);
  in->function = NULL;
}

static bool is_planned(const plan *made, int64_t number) {
  for (int64_t i = 0; i < made->function_count; ++i)
    if (made->functions[i].number == number)
      return true;
  return false;
}

static void check_complete(plan_reader *in, const plan *made) {
  for (int64_t i = 0; !in->failed && i < in->model->function_count; ++i) {
    const braid_function_v1 *one = &in->model->functions[i];
    if (one->device == in->device && !one->on_caller && !is_planned(made, i)) {
      in->function = one;
      braid_plan_fail(in, "there is nothing");
    }
  }
}

plan *braid_cuda_read_plan(const braid_device_model *model, const void *data, int64_t bytes,
                           char *error, size_t size) {
  plan_reader in = {.at = data,
                    .end = (const uint8_t *)data + bytes,
                    .model = model->model,
                    .device = model->device,
                    .of = "functions",
                    .error = error,
                    .size = size};
  plan *made = calloc(1, sizeof *made);
  if (made == NULL) {
    snprintf(error, size, "out of memory");
    return NULL;
  }
  if (braid_plan_word(&in) != MAGIC || braid_plan_word(&in) != VERSION)
    braid_plan_fail(&in, "it is of another version; compile the model again");
  int64_t count = braid_plan_number(&in, 0, PLAN_MOST, "it has too many functions");
  made->functions = braid_plan_array(&in, count, sizeof *made->functions);
  for (int64_t i = 0; !in.failed && i < count; ++i) {
    made->function_count = i + 1;
    function(&in, &made->functions[i]);
  }
  if (!in.failed && in.at != in.end)
    braid_plan_fail(&in, "there is something behind its end");
  check_complete(&in, made);
  if (!in.failed)
    return made;
  braid_cuda_free_plan(made);
  return NULL;
}

void braid_cuda_free_plan(plan *plan) {
  if (plan == NULL)
    return;
  for (int64_t i = 0; i < plan->function_count; ++i) {
    plan_function *one = &plan->functions[i];
    for (int64_t s = 0; one->steps != NULL && s < one->step_count; ++s) {
      for (int64_t a = 0; one->steps[s].arguments != NULL && a < one->steps[s].argument_count; ++a)
        free(one->steps[s].arguments[a].tensor);
      free(one->steps[s].arguments);
    }
    free(one->steps);
  }
  free(plan->functions);
  free(plan);
}
