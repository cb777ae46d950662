/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads an artifact, sets the shapes of its inputs and fills them with a fixed ramp, asks for the
 * shapes of its outputs, runs it, and prints the norm of each. Inputs and outputs are f32, bytes of
 * either sign, or i32.
 *
 *   cc run_model.c -I include -L build -lbraid_runtime -lm -o run_model
 *   ./run_model model.braid [threads [dim=size …]]
 */
#include <braid/runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 1, U8 = 2, I8 = 3, I32 = 6 };

/* Bytes of an element; 0 of a type that this program does not know. */
static size_t element_bytes(int64_t dtype) {
  if (dtype == U8 || dtype == I8)
    return 1;
  return dtype == F32 || dtype == I32 ? 4 : 0;
}

static int64_t element_count(const braid_tensor_v2 *tensor, const int64_t *shape) {
  int64_t count = 1;
  for (int64_t d = 0; d < tensor->rank; ++d)
    count *= shape[d];
  return count;
}

static void *create_buffer(const braid_tensor_v2 *tensor, const int64_t *shape) {
  size_t bytes = element_bytes(tensor->dtype);
  if (bytes == 0) {
    fprintf(stderr, "run_model: '%s' is not f32, i8, ui8 or i32\n", tensor->name);
    exit(1);
  }
  void *buffer = calloc((size_t)element_count(tensor, shape) + 1, bytes);
  if (buffer == NULL) {
    fprintf(stderr, "run_model: out of memory\n");
    exit(1);
  }
  return buffer;
}

/* The size of an open dim: from one of the texts `name=size`, else its upper bound, else 1. */
static int64_t chosen_size(const char *name, int64_t bound, char **texts) {
  size_t length = strlen(name);
  for (; *texts != NULL; ++texts)
    if (strncmp(*texts, name, length) == 0 && (*texts)[length] == '=')
      return atoll(*texts + length + 1);
  return bound < INT64_MAX ? bound : 1;
}

/* Sets the shape of an input and returns it, in memory that the caller frees. */
static int64_t *set_shape(braid_context_t *context, const braid_model_v2 *model, int64_t index,
                          char **texts) {
  const braid_tensor_v2 *input = &model->inputs[index];
  int64_t *shape = calloc((size_t)input->rank + 1, sizeof *shape);
  for (int64_t d = 0; shape != NULL && d < input->rank; ++d) {
    int64_t dim = input->dims != NULL ? input->dims[d] : -1;
    shape[d] =
        dim < 0 ? input->bound[d] : chosen_size(model->dims[dim].name, input->bound[d], texts);
  }
  if (shape == NULL || braid_context_set_input_shape(context, index, shape) != 0) {
    fprintf(stderr, "run_model: error: %s\n", braid_last_error());
    exit(1);
  }
  return shape;
}

/* From 0 to 1 in f32, from 0 to 16 in integers. */
static void fill_with_ramp(void *buffer, int64_t dtype, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == F32)
      ((float *)buffer)[i] = (float)(i % 17) / 16.0f;
    else if (dtype == I32)
      ((int32_t *)buffer)[i] = (int32_t)(i % 17);
    else
      ((uint8_t *)buffer)[i] = (uint8_t)(i % 17);
  }
}

static double element(const void *buffer, int64_t dtype, int64_t i) {
  if (dtype == F32)
    return ((const float *)buffer)[i];
  if (dtype == I32)
    return ((const int32_t *)buffer)[i];
  return dtype == I8 ? ((const int8_t *)buffer)[i] : ((const uint8_t *)buffer)[i];
}

static double norm(const void *buffer, int64_t dtype, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    double value = element(buffer, dtype, i);
    sum += value * value;
  }
  return sqrt(sum);
}

static int run(braid_context_t *context, const braid_model_v2 *model, char **texts) {
  void **inputs = calloc((size_t)model->input_count + 1, sizeof(void *));
  void **outputs = calloc((size_t)model->output_count + 1, sizeof(void *));
  for (int64_t i = 0; i < model->input_count; ++i) {
    int64_t *shape = set_shape(context, model, i, texts);
    const braid_tensor_v2 *input = &model->inputs[i];
    inputs[i] = create_buffer(input, shape);
    fill_with_ramp(inputs[i], input->dtype, element_count(input, shape));
    free(shape);
  }
  int status = 0;
  for (int64_t i = 0; i < model->output_count && status == 0; ++i) {
    const int64_t *shape = braid_context_output_shape(context, i);
    status = shape == NULL;
    if (shape != NULL)
      outputs[i] = create_buffer(&model->outputs[i], shape);
  }
  if (status == 0)
    status = braid_context_run(context, inputs, outputs);
  for (int64_t i = 0; status == 0 && i < model->output_count; ++i) {
    const int64_t *shape = braid_context_output_shape(context, i);
    const braid_tensor_v2 *output = &model->outputs[i];
    printf("%s: %.6g\n", output->name,
           norm(outputs[i], output->dtype, element_count(output, shape)));
  }
  for (int64_t i = 0; i < model->input_count; ++i)
    free(inputs[i]);
  for (int64_t i = 0; i < model->output_count; ++i)
    free(outputs[i]);
  free(inputs);
  free(outputs);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: run_model MODEL.braid [THREADS [DIM=SIZE …]]\n");
    return 2;
  }
  braid_model_t *model = braid_model_open(argv[1]);
  braid_context_t *context =
      model ? braid_context_create(model, argc > 2 ? atoll(argv[2]) : 1) : NULL;
  char **texts = argv + (argc > 2 ? 3 : 2);
  int status = context ? run(context, braid_model_describe(model), texts) : 1;
  if (status != 0)
    fprintf(stderr, "run_model: error: %s\n", braid_last_error());
  braid_context_close(context);
  braid_model_close(model);
  return status;
}
