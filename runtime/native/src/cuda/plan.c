/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _POSIX_C_SOURCE 200809L
#include "plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, VERSION = 2, MOST = 1 << 24, MOST_THREADS = 1024 };

static const int64_t MAGIC = 0x4e414c5044494152; /* "RAIDPLAN" */

/* What is read, and how far. `failed` once it has ended too soon, or is malformed. */
typedef struct reader {
  const uint8_t *at, *end;
  const braid_model_v2 *model;
  int64_t device;
  const braid_function_v1 *function; /* whose steps are read */
  char *error;
  size_t size;
  bool failed;
} reader;

static void fail(reader *in, const char *what) {
  if (!in->failed)
    snprintf(in->error, in->size, "the plan of its functions is malformed: %s%s%.100s", what,
             in->function != NULL ? ", in @" : "", in->function != NULL ? in->function->name : "");
  in->failed = true;
}

static int64_t word(reader *in) {
  if (in->failed || in->end - in->at < WORD) {
    fail(in, "it ends too soon");
    return 0;
  }
  uint64_t value = 0;
  for (int i = 0; i < WORD; ++i)
    value |= (uint64_t)in->at[i] << (8 * i);
  in->at += WORD;
  return (int64_t)value;
}

/* A word between two others. */
static int64_t within(reader *in, int64_t least, int64_t most, const char *what) {
  int64_t value = word(in);
  if (in->failed || (value >= least && value <= most))
    return value;
  fail(in, what);
  return least;
}

static void name(reader *in, char text[PLAN_NAME]) {
  int64_t bytes = within(in, 1, PLAN_NAME - 1, "a name is too long");
  int64_t padded = (bytes + WORD - 1) / WORD * WORD;
  text[0] = '\0';
  if (in->failed || in->end - in->at < padded) {
    fail(in, "it ends too soon");
    return;
  }
  memcpy(text, in->at, (size_t)bytes);
  text[bytes] = '\0';
  in->at += padded;
}

static void *array(reader *in, int64_t count, size_t each) {
  void *made = calloc((size_t)count + 1, each);
  if (made == NULL)
    fail(in, "there is no memory for it");
  return made;
}

/* Bytes of the memory that a place is in; -1 where there is none. Of functions of other devices all
 * is right. */
static int64_t memory_bytes(const reader *in, const plan_place *place) {
  const braid_function_v1 *function = in->function;
  if (function == NULL)
    return INT64_MAX;
  switch (place->space) {
  case PLAN_ARENA:
    return function->arena_bytes;
  case PLAN_WEIGHTS:
    return in->model->devices[in->device].weights_bytes;
  case PLAN_INPUT:
    return place->number < function->input_count ? function->bytes[place->number] : -1;
  default:
    return place->number < function->output_count
               ? function->bytes[function->input_count + place->number]
               : -1;
  }
}

static void place(reader *in, plan_place *read) {
  read->space = within(in, PLAN_ARENA, PLAN_OUTPUT, "there is no such memory");
  read->number = within(in, 0, MOST, "there is no such memory");
  read->offset = within(in, 0, INT64_MAX, "an offset is negative");
}

static void check_inside(reader *in, const plan_argument *own) {
  int64_t bytes = memory_bytes(in, &own->place);
  if (own->bytes > bytes || own->place.offset > bytes - own->bytes)
    fail(in, "a buffer lies outside of its memory");
}

static void tensor(reader *in, plan_argument *own) {
  plan_tensor *made = own->tensor = array(in, 1, sizeof *made);
  if (in->failed)
    return;
  made->type = within(in, 0, 12, "a tensor map has an unknown type");
  made->rank = within(in, 1, PLAN_RANK, "a tensor map has too many dims");
  made->swizzle = within(in, 0, 3, "a tensor map has an unknown swizzle");
  for (int64_t d = 0; d < made->rank; ++d)
    made->extents[d] = (uint64_t)within(in, 1, (int64_t)1 << 32, "an extent is out of range");
  for (int64_t d = 0; d + 1 < made->rank; ++d)
    made->strides[d] = (uint64_t)within(in, 16, ((int64_t)1 << 40) - 1, "a stride is out of range");
  for (int64_t d = 0; d < made->rank; ++d)
    made->box[d] = (uint32_t)within(in, 1, 256, "a box is out of range");
}

static void argument(reader *in, plan_argument *own) {
  bool mapped = within(in, 0, 1, "there is no such kind of argument") == 1;
  place(in, &own->place);
  own->bytes = within(in, 0, INT64_MAX, "a size is negative");
  if (mapped)
    tensor(in, own);
  check_inside(in, own);
}

static void copy(reader *in, plan_step *step) {
  step->copies = true;
  step->arguments = array(in, 2, sizeof *step->arguments);
  if (in->failed)
    return;
  step->argument_count = 2;
  place(in, &step->arguments[0].place);
  place(in, &step->arguments[1].place);
  step->arguments[0].bytes = step->arguments[1].bytes =
      within(in, 0, INT64_MAX, "a size is negative");
  check_inside(in, &step->arguments[0]);
  check_inside(in, &step->arguments[1]);
}

static void launch(reader *in, plan_step *step) {
  for (int i = 0; i < PLAN_ENTRIES; ++i)
    name(in, step->entries[i]);
  step->blocks = within(in, 1, INT_MAX, "a launch has no blocks, or too many");
  step->threads = within(in, 1, MOST_THREADS, "a block has no threads, or too many");
  step->shared_bytes = within(in, 0, INT_MAX, "a size is negative");
  step->argument_count = within(in, 0, MOST, "a launch has too many arguments");
  step->arguments = array(in, step->argument_count, sizeof *step->arguments);
  for (int64_t i = 0; !in->failed && i < step->argument_count; ++i)
    argument(in, &step->arguments[i]);
}

static void function(reader *in, plan_function *own) {
  char symbol[PLAN_NAME];
  name(in, symbol);
  /* Devices that take turns have the same plan, of which one may run a part. */
  for (own->number = 0; own->number < in->model->function_count; ++own->number) {
    const braid_function_v1 *one = &in->model->functions[own->number];
    if (one->device == in->device && strcmp(one->name, symbol) == 0) {
      in->function = one;
      break;
    }
  }
  own->step_count = within(in, 0, MOST, "a function has too many steps");
  own->steps = array(in, own->step_count, sizeof *own->steps);
  for (int64_t i = 0; !in->failed && i < own->step_count; ++i)
    if (within(in, 0, 1, "there is no such kind of step") == 1)
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

static void check_complete(reader *in, const plan *made) {
  for (int64_t i = 0; !in->failed && i < in->model->function_count; ++i) {
    const braid_function_v1 *one = &in->model->functions[i];
    if (one->device == in->device && !one->on_caller && !is_planned(made, i)) {
      in->function = one;
      fail(in, "there is nothing");
    }
  }
}

plan *braid_cuda_read_plan(const braid_device_model *model, const void *data, int64_t bytes,
                           char *error, size_t size) {
  reader in = {data, (const uint8_t *)data + bytes, model->model, model->device, NULL, error, size,
               false};
  plan *made = calloc(1, sizeof *made);
  if (made == NULL) {
    snprintf(error, size, "out of memory");
    return NULL;
  }
  if (word(&in) != MAGIC || word(&in) != VERSION)
    fail(&in, "it is of another version; compile the model again");
  int64_t count = within(&in, 0, MOST, "it has too many functions");
  made->functions = array(&in, count, sizeof *made->functions);
  for (int64_t i = 0; !in.failed && i < count; ++i) {
    made->function_count = i + 1;
    function(&in, &made->functions[i]);
  }
  if (!in.failed && in.at != in.end)
    fail(&in, "there is something behind its end");
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
