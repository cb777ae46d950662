/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads an artifact that was compiled with a state, and runs steps of a session: each gets a ramp
 * for every input that is no state, and the state that the step before left. After each step it
 * prints the length of the state and the norms of the outputs that are no state. Inputs are f32 or
 * i64, outputs f32; the sizes of their open dims are 1, or as given.
 *
 *   cc session_model.c -I include -L build -lbraid_runtime -lm -o session_model
 *   ./session_model model.braid [steps [dim=size …]]
 */
#include <braid/runtime.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 1, I64 = 7, CAPACITY = 64 };

static bool is_state(const braid_model_v2 *model, int64_t input) {
  for (int64_t i = 0; i < model->state_count; ++i)
    if (model->states[i].input == input)
      return true;
  return false;
}

static bool becomes_state(const braid_model_v2 *model, int64_t output) {
  for (int64_t i = 0; i < model->state_count; ++i)
    if (model->states[i].output == output)
      return true;
  return false;
}

static int64_t element_count(const braid_tensor_v2 *tensor, const int64_t *shape) {
  int64_t count = 1;
  for (int64_t d = 0; d < tensor->rank; ++d)
    count *= shape[d];
  return count;
}

static void *create_buffer(const braid_tensor_v2 *tensor, int64_t count) {
  if (tensor->dtype != F32 && tensor->dtype != I64) {
    fprintf(stderr, "session_model: '%s' is neither f32 nor i64\n", tensor->name);
    exit(1);
  }
  void *buffer = calloc((size_t)count + 1, tensor->dtype == F32 ? sizeof(float) : sizeof(int64_t));
  if (buffer == NULL) {
    fprintf(stderr, "session_model: out of memory\n");
    exit(1);
  }
  return buffer;
}

/* The size of an open dim: as in one of the texts `name=size`, or 1. */
static int64_t chosen_size(const char *name, char **texts) {
  size_t length = strlen(name);
  for (; *texts != NULL; ++texts)
    if (strncmp(*texts, name, length) == 0 && (*texts)[length] == '=')
      return atoll(*texts + length + 1);
  return 1;
}

/* Sets the shape of an input that is no state and returns a buffer with a ramp from 0 to 1 in f32,
 * from 0 to 16 in i64; NULL on failure. */
static void *create_input(braid_context_t *context, const braid_model_v2 *model, int64_t index,
                          char **texts) {
  const braid_tensor_v2 *input = &model->inputs[index];
  int64_t shape[16] = {0};
  for (int64_t d = 0; d < input->rank && d < 16; ++d)
    shape[d] = input->shape[d] >= 0 ? input->shape[d]
                                    : chosen_size(model->dims[input->dims[d]].name, texts);
  if (braid_context_set_input_shape(context, index, shape) != 0)
    return NULL;
  int64_t count = element_count(input, shape);
  void *buffer = create_buffer(input, count);
  for (int64_t i = 0; i < count; ++i) {
    if (input->dtype == F32)
      ((float *)buffer)[i] = (float)(i % 17) / 16.0f;
    else
      ((int64_t *)buffer)[i] = i % 17;
  }
  return buffer;
}

/* Runs one step and prints its outputs. The shapes of other inputs stay the same; those of outputs
 * may change with the state. */
static int step(braid_session_t *session, braid_context_t *context, const braid_model_v2 *model,
                void *const *inputs) {
  void **outputs = calloc((size_t)model->output_count + 1, sizeof *outputs);
  int64_t *counts = calloc((size_t)model->output_count + 1, sizeof *counts);
  int status = outputs == NULL || counts == NULL || braid_session_set_shapes(session, context) != 0;
  for (int64_t i = 0; i < model->output_count && status == 0; ++i) {
    const int64_t *shape = becomes_state(model, i) ? NULL : braid_context_output_shape(context, i);
    status = shape == NULL && !becomes_state(model, i);
    if (shape != NULL) {
      counts[i] = element_count(&model->outputs[i], shape);
      outputs[i] = create_buffer(&model->outputs[i], counts[i]);
    }
  }
  if (status == 0)
    status = braid_session_step(session, context, inputs, outputs);
  if (status == 0)
    printf("length %lld\n", (long long)braid_session_length(session));
  for (int64_t i = 0; status == 0 && i < model->output_count; ++i) {
    double sum = 0.0;
    for (int64_t j = 0; j < counts[i]; ++j)
      sum += (double)((float *)outputs[i])[j] * ((float *)outputs[i])[j];
    if (!becomes_state(model, i))
      printf("%s: %.6g\n", model->outputs[i].name, sqrt(sum));
  }
  for (int64_t i = 0; outputs != NULL && i < model->output_count; ++i)
    free(outputs[i]);
  free(outputs);
  free(counts);
  return status;
}

static int run(braid_session_t *session, braid_context_t *context, const braid_model_v2 *model,
               int64_t steps, char **texts) {
  void **inputs = calloc((size_t)model->input_count + 1, sizeof *inputs);
  int status = inputs == NULL;
  for (int64_t i = 0; i < model->input_count && status == 0; ++i)
    if (!is_state(model, i)) {
      inputs[i] = create_input(context, model, i, texts);
      status = inputs[i] == NULL;
    }
  for (int64_t i = 0; i < steps && status == 0; ++i)
    status = step(session, context, model, inputs);
  for (int64_t i = 0; inputs != NULL && i < model->input_count; ++i)
    free(inputs[i]);
  free(inputs);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: session_model MODEL.braid [STEPS [DIM=SIZE …]]\n");
    return 2;
  }
  braid_model_t *model = braid_model_open(argv[1]);
  braid_session_t *session = model ? braid_session_create(model, CAPACITY) : NULL;
  braid_context_t *context = session ? braid_context_create(model, 1) : NULL;
  int64_t steps = argc > 2 ? atoll(argv[2]) : 3;
  char **texts = argv + (argc > 2 ? 3 : 2);
  int status = context ? run(session, context, braid_model_describe(model), steps, texts) : 1;
  if (status != 0)
    fprintf(stderr, "session_model: error: %s\n", braid_last_error());
  braid_context_close(context);
  braid_session_close(session);
  braid_model_close(model);
  return status;
}
