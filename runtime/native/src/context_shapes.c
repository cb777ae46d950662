/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The shapes of the inputs and outputs of runs. */
#include "context.h"
#include "message.h"
#include "phases.h"
#include "specializations.h"

#include <stdlib.h>
#include <string.h>

/* One allocation: the row pointers, then the sizes they point to, preset to the upper bounds. */
int64_t **braid_create_shapes(const braid_tensor_v2 *tensors, int64_t count) {
  size_t dims = 0;
  for (int64_t i = 0; i < count; ++i)
    dims += (size_t)tensors[i].rank;
  int64_t **rows = malloc((size_t)count * sizeof *rows + dims * sizeof **rows + 1);
  if (rows == NULL)
    return NULL;
  int64_t *next = (int64_t *)(rows + count);
  for (int64_t i = 0; i < count; ++i) {
    rows[i] = next;
    for (int64_t d = 0; d < tensors[i].rank; ++d)
      *next++ = tensors[i].bound[d];
  }
  return rows;
}

/* Describes the expected size of dim `d` of an input. */
static void report_size(const braid_model_v2 *descriptor, const braid_tensor_v2 *input, int64_t d,
                        int64_t size) {
  char name[128] = "";
  int64_t dim = input->dims != NULL ? input->dims[d] : -1, bound = input->bound[d];
  braid_message message = braid_message_in(name, sizeof name);
  if (dim >= 0)
    braid_append(&message, " ('%.*s')", braid_precision(descriptor->dims[dim].name, 100),
                 descriptor->dims[dim].name);
  bool is_open = input->shape[d] < 0, is_bounded = bound != INT64_MAX;
  const char *relation = !is_open ? "" : is_bounded ? "at most " : "at least ";
  braid_set_error("input '%s': dim %lld%s is %lld, expected %s%lld", input->name, (long long)d,
                  name, (long long)size, relation, is_bounded ? (long long)bound : 0);
}

static bool has_input(const braid_model_v2 *descriptor, int64_t index) {
  bool has = index >= 0 && index < descriptor->input_count;
  if (!has)
    braid_set_error("the model has %lld inputs, there is no input %lld",
                    (long long)descriptor->input_count, (long long)index);
  return has;
}

bool braid_check_input_shape(const braid_model_v2 *descriptor, int64_t index,
                             const int64_t *shape) {
  if (!has_input(descriptor, index))
    return false;
  const braid_tensor_v2 *input = &descriptor->inputs[index];
  if (input->rank > 0 && shape == NULL) {
    braid_set_error("input '%s': its shape is NULL", input->name);
    return false;
  }
  for (int64_t d = 0; d < input->rank; ++d) {
    bool open = input->shape[d] < 0;
    if (open ? shape[d] < 0 || shape[d] > input->bound[d] : shape[d] != input->shape[d]) {
      report_size(descriptor, input, d, shape[d]);
      return false;
    }
  }
  if (descriptor->open != NULL && !braid_is_addressable(input->rank, shape)) {
    braid_set_error("input '%s' would be too large for this computer", input->name);
    return false;
  }
  return true;
}

int braid_context_set_input_shape(braid_context_t *context, int64_t index, const int64_t *shape) {
  if (braid_is_null(context, "context") ||
      !braid_check_input_shape(context->model->descriptor, index, shape))
    return 1;
  const braid_tensor_v2 *input = &context->model->descriptor->inputs[index];
  if (braid_same_shape(input->rank, context->input_shapes[index], shape))
    return 0;
  context->is_planned = false;
  memcpy(context->input_shapes[index], shape, (size_t)input->rank * sizeof *shape);
  return 0;
}

enum { I32 = 6, I64 = 7 }; /* as ONNX numbers them */

int64_t braid_value_size(int64_t dtype) { return dtype == I64 ? 8 : dtype == I32 ? 4 : 0; }

/* Reads a size from the data of its input. */
static bool read_value(braid_context_t *context, int64_t number, const char *data) {
  const braid_value_size_v1 *own = &context->model->descriptor->open->values[number];
  const braid_tensor_v2 *input = &context->model->descriptor->inputs[own->input];
  int64_t value = 0;
  int32_t narrow;
  if (input->dtype == I32) {
    memcpy(&narrow, data + own->element * (int64_t)sizeof narrow, sizeof narrow);
    value = narrow;
  } else {
    memcpy(&value, data + own->element * (int64_t)sizeof value, sizeof value);
  }
  if (value < 0) {
    braid_set_error("%s '%s': element %lld is %lld, expected a size, at least 0",
                    context->model->is_part ? "value" : "input", input->name,
                    (long long)own->element, (long long)value);
    return false;
  }
  if (context->values[number] != value)
    context->is_planned = false;
  context->values[number] = value;
  return true;
}

int braid_context_set_input_values(braid_context_t *context, int64_t index, const void *data) {
  if (braid_is_null(context, "context"))
    return 1;
  const braid_model_v2 *descriptor = context->model->descriptor;
  if (!has_input(descriptor, index))
    return 1;
  for (int64_t i = 0; descriptor->open != NULL && i < descriptor->open->value_count; ++i)
    if (descriptor->open->values[i].input == index &&
        (braid_is_null(data, "data of the input") || !read_value(context, i, data)))
      return 1;
  return 0;
}

bool braid_read_values(braid_context_t *context, void *const *inputs) {
  const braid_open_v1 *open = context->model->descriptor->open;
  for (int64_t i = 0; open != NULL && i < open->value_count; ++i) {
    int64_t index = open->values[i].input;
    if (inputs == NULL || inputs[index] == NULL) {
      braid_set_error("the buffer for input '%s' is NULL",
                      context->model->descriptor->inputs[index].name);
      return false;
    }
    if (!read_value(context, i, inputs[index]))
      return false;
  }
  return true;
}

/* Stores the sizes that are elements of inputs in the model's dims, which shapes may have set as
 * well. */
static bool take_values(const braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  for (int64_t i = 0; i < descriptor->open->value_count; ++i) {
    const braid_value_size_v1 *own = &descriptor->open->values[i];
    if (context->values[i] < 0) {
      braid_set_error(
          "input '%s' says sizes; set its values before the shapes of outputs are asked",
          descriptor->inputs[own->input].name);
      return false;
    }
    int64_t *size = &context->sizes[own->dim];
    if (*size >= 0 && *size != context->values[i]) {
      braid_set_error("dim '%s' is %lld in input '%s', and %lld in another one",
                      descriptor->dims[own->dim].name, (long long)context->values[i],
                      descriptor->inputs[own->input].name, (long long)*size);
      return false;
    }
    *size = context->values[i];
  }
  return true;
}

/* The variant for the inputs' shapes, with which the outputs' are set; returns NULL, with the error
 * set, if there is none. */
static const braid_variant_v2 *select_variant(braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  const braid_variant_v2 *variant =
      braid_select_variant(descriptor, context->env.input_shapes, context->sizes);
  for (int64_t i = 0; variant != NULL && i < descriptor->output_count; ++i)
    braid_resize(&descriptor->outputs[i], variant->output_shapes[i], context->sizes,
                 context->output_shapes[i]);
  return variant;
}

bool braid_has_sizes(const braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  for (int64_t i = 0; i < descriptor->input_count; ++i)
    for (int64_t d = 0; d < descriptor->inputs[i].rank; ++d)
      if (context->input_shapes[i][d] == INT64_MAX) {
        braid_set_error("input '%s': dim %lld is open; set its shape before the run",
                        descriptor->inputs[i].name, (long long)d);
        return false;
      }
  return true;
}

/* Whether the inputs have the sizes that follow from those of the model's dims. */
static bool check_inputs(const braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  const int64_t *const *expected = descriptor->open->input_shapes;
  for (int64_t i = 0; expected != NULL && i < descriptor->input_count; ++i)
    for (int64_t d = 0; d < descriptor->inputs[i].rank; ++d) {
      int64_t size = expected[i][d] < 0 ? 0 : context->plan->sizes[expected[i][d]];
      if (expected[i][d] >= 0 && size != context->input_shapes[i][d])
        return braid_fail_at(descriptor, context->sizes,
                             "input '%s': dim %lld is %lld, expected %lld",
                             descriptor->inputs[i].name, (long long)d,
                             (long long)context->input_shapes[i][d], (long long)size);
    }
  return true;
}

/* Sets the outputs' shapes to those of the specialization that was chosen. */
static bool take_chosen_shapes(braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  for (int64_t i = 0; i < descriptor->output_count; ++i) {
    const int64_t *shape = braid_context_output_shape(context->chosen, i);
    if (shape == NULL)
      return false;
    if (descriptor->outputs[i].rank > 0)
      memcpy(context->output_shapes[i], shape, (size_t)descriptor->outputs[i].rank * sizeof *shape);
  }
  return true;
}

/* Finds the plan of an open model, or its specialization, for the inputs' shapes, with which the
 * outputs' are set; returns false, with the error set, if there is none. */
static bool plan_sizes(braid_context_t *context) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  if (!context->is_planned) {
    if (!braid_has_sizes(context) ||
        !braid_read_sizes(descriptor, context->env.input_shapes, context->sizes) ||
        !take_values(context))
      return false;
    if (!braid_specializations_choose(context))
      return false;
    if (context->chosen != NULL) {
      context->is_planned = take_chosen_shapes(context);
      return context->is_planned;
    }
    if (context->plan == NULL ||
        !braid_same_shape(descriptor->dim_count, context->plan->dims, context->sizes)) {
      braid_plan *plan = braid_plans_find(context->model->plans, context->sizes);
      if (plan == NULL)
        return false;
      braid_plan_release(context->plan);
      context->plan = plan;
    }
    if (!check_inputs(context))
      return false;
    context->env.sizes = context->plan->sizes;
    context->is_planned = true;
  }
  if (context->chosen != NULL)
    return true;
  const int64_t *shape = context->plan->output_shapes;
  for (int64_t i = 0; i < descriptor->output_count; shape += descriptor->outputs[i++].rank)
    if (descriptor->outputs[i].rank > 0)
      memcpy(context->output_shapes[i], shape, (size_t)descriptor->outputs[i].rank * sizeof *shape);
  return true;
}

bool braid_context_set_output_shapes(braid_context_t *context, const braid_variant_v2 **variant) {
  *variant = NULL;
  if (context->model->descriptor->open != NULL)
    return plan_sizes(context);
  return context->model->descriptor->variant_count == 0 ||
         (*variant = select_variant(context)) != NULL;
}

static bool has_output(const braid_model_v2 *descriptor, int64_t index) {
  bool has = index >= 0 && index < descriptor->output_count;
  if (!has)
    braid_set_error("the model has %lld outputs, there is no output %lld",
                    (long long)descriptor->output_count, (long long)index);
  return has;
}

const int64_t *braid_context_output_shape(braid_context_t *context, int64_t index) {
  if (braid_is_null(context, "context"))
    return NULL;
  const braid_model_v2 *descriptor = context->model->descriptor;
  if (!has_output(descriptor, index))
    return NULL;
  if (context->phases != NULL)
    return braid_phases_output_shape(context->phases, index);
  const braid_variant_v2 *variant;
  return braid_context_set_output_shapes(context, &variant) ? context->output_shapes[index] : NULL;
}

const void *braid_context_output(braid_context_t *context, int64_t index) {
  if (braid_is_null(context, "context") || !has_output(context->model->descriptor, index))
    return NULL;
  if (context->phases != NULL)
    return braid_phases_output(context->phases, index);
  braid_set_error("runs of the model write their outputs to the buffers that they are given");
  return NULL;
}
