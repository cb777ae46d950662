/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads an artifact, fills its inputs with a fixed ramp, runs it, and prints the norm of each
 * output.
 *
 *   cc run_model.c -I include -L build -lbraid_runtime -lm -o run_model
 *   ./run_model model.braid [threads]
 */
#include <braid/runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { F32 = 1 };

static int64_t element_count(const braid_tensor_v2 *tensor) {
  int64_t count = 1;
  for (int64_t d = 0; d < tensor->rank; ++d)
    count *= tensor->bound[d];
  return count;
}

static float *create_buffer(const braid_tensor_v2 *tensor) {
  if (tensor->dtype != F32) {
    fprintf(stderr, "run_model: '%s' is not f32\n", tensor->name);
    exit(1);
  }
  float *buffer = calloc((size_t)element_count(tensor) + 1, sizeof(float));
  if (buffer == NULL) {
    fprintf(stderr, "run_model: out of memory\n");
    exit(1);
  }
  return buffer;
}

static void fill_with_ramp(float *buffer, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    buffer[i] = (float)(i % 17) / 16.0f;
}

static double norm(const float *buffer, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i)
    sum += (double)buffer[i] * buffer[i];
  return sqrt(sum);
}

static int run(braid_context_t *context, const braid_model_v2 *model) {
  void **inputs = calloc((size_t)model->input_count + 1, sizeof(void *));
  void **outputs = calloc((size_t)model->output_count + 1, sizeof(void *));
  for (int64_t i = 0; i < model->input_count; ++i) {
    inputs[i] = create_buffer(&model->inputs[i]);
    fill_with_ramp(inputs[i], element_count(&model->inputs[i]));
  }
  for (int64_t i = 0; i < model->output_count; ++i)
    outputs[i] = create_buffer(&model->outputs[i]);

  int status = braid_context_run(context, inputs, outputs);
  for (int64_t i = 0; status == 0 && i < model->output_count; ++i)
    printf("%s: %.6g\n", model->outputs[i].name,
           norm(outputs[i], element_count(&model->outputs[i])));

  for (int64_t i = 0; i < model->input_count; ++i)
    free(inputs[i]);
  for (int64_t i = 0; i < model->output_count; ++i)
    free(outputs[i]);
  free(inputs);
  free(outputs);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: run_model MODEL.braid [THREADS]\n");
    return 2;
  }
  braid_model_t *model = braid_model_open(argv[1]);
  braid_context_t *context =
      model ? braid_context_create(model, argc > 2 ? atoll(argv[2]) : 1) : NULL;
  int status = context ? run(context, braid_model_describe(model)) : 1;
  if (status != 0)
    fprintf(stderr, "run_model: error: %s\n", braid_last_error());
  braid_context_close(context);
  braid_model_close(model);
  return status;
}
