/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "plan_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void braid_plan_fail(plan_reader *in, const char *what) {
  const char *name = in->function != NULL ? in->function->name : "";
  if (!in->failed)
    snprintf(in->error, in->size, "the plan of its %s is malformed: %s%s%.100s", in->of, what,
             in->function != NULL ? ", in @" : "", name);
  in->failed = true;
}

/* Whether so many bytes are left; fails if not. */
static bool has_bytes(plan_reader *in, int64_t bytes) {
  if (!in->failed && in->end - in->at < bytes)
    braid_plan_fail(in, "it ends too soon");
  return !in->failed;
}

int64_t braid_plan_word(plan_reader *in) {
  if (!has_bytes(in, PLAN_WORD))
    return 0;
  uint64_t value = 0;
  for (int i = 0; i < PLAN_WORD; ++i)
    value |= (uint64_t)in->at[i] << (8 * i);
  in->at += PLAN_WORD;
  return (int64_t)value;
}

int64_t braid_plan_number(plan_reader *in, int64_t least, int64_t most, const char *what) {
  int64_t value = braid_plan_word(in);
  if (!in->failed && value >= least && value <= most)
    return value;
  braid_plan_fail(in, what);
  return least;
}

int64_t braid_plan_count(plan_reader *in) {
  return braid_plan_number(in, 0, (in->end - in->at) / PLAN_WORD, "it ends too soon");
}

void braid_plan_name(plan_reader *in, char *text, int64_t size) {
  int64_t bytes = braid_plan_number(in, 0, size - 1, "a name is too long");
  int64_t padded = (bytes + PLAN_WORD - 1) / PLAN_WORD * PLAN_WORD;
  text[0] = '\0';
  if (!has_bytes(in, padded))
    return;
  memcpy(text, in->at, (size_t)bytes);
  text[bytes] = '\0';
  in->at += padded;
}

void *braid_plan_array(plan_reader *in, int64_t count, size_t each) {
  void *made = in->failed ? NULL : calloc((size_t)count + 1, each);
  if (made == NULL)
    braid_plan_fail(in, "there is no memory for it");
  return made;
}

void braid_plan_place(plan_reader *in, plan_place *place, plan_space last) {
  place->space = braid_plan_number(in, PLAN_ARENA, last, "there is no such memory");
  place->number = braid_plan_number(in, 0, PLAN_MOST, "there is no such memory");
  place->offset = braid_plan_number(in, 0, INT64_MAX, "an offset is negative");
}

/* The size of the memory in which an operand lies; -1 if it does not exist. */
static int64_t memory_bytes(const plan_reader *in, const plan_place *place) {
  const braid_function_v1 *function = in->function;
  switch (place->space) {
  case PLAN_ARENA:
    return function->arena_bytes;
  case PLAN_WEIGHTS:
    return in->model->devices[in->device].weights_bytes;
  case PLAN_INPUT:
    return place->number < function->input_count ? function->bytes[place->number] : -1;
  case PLAN_OUTPUT:
    return place->number < function->output_count
               ? function->bytes[function->input_count + place->number]
               : -1;
  default:
    return INT64_MAX;
  }
}

void braid_plan_check_inside(plan_reader *in, const plan_place *place, int64_t bytes) {
  if (in->failed || in->function == NULL)
    return;
  int64_t most = memory_bytes(in, place);
  if (bytes < 0 || bytes > most || place->offset > most - bytes)
    braid_plan_fail(in, "a buffer lies outside of its memory");
}

int64_t braid_plan_function(const plan_reader *in, const char *name) {
  int64_t number = 0;
  for (; number < in->model->function_count; ++number) {
    const braid_function_v1 *one = &in->model->functions[number];
    if (one->device == in->device && strcmp(one->name, name) == 0)
      break;
  }
  return number;
}
