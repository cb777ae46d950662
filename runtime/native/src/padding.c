/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Running a variant on inputs that are smaller than it takes. */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

/* A tensor at the sizes of the variant and as the caller has it. */
typedef struct padded_tensor {
  const braid_tensor_v2 *tensor;
  const int64_t *actual;
  int64_t padded[BRAID_MAX_RANK];
  size_t bytes; /* of the copy; 0 where none is needed */
} padded_tensor;

static padded_tensor describe(const braid_tensor_v2 *tensor, const int64_t *actual,
                              const int64_t *shape, const int64_t *sizes) {
  padded_tensor result = {.tensor = tensor, .actual = actual};
  braid_resize(tensor, shape, sizes, result.padded);
  if (!braid_same_shape(tensor->rank, actual, result.padded))
    result.bytes =
        (braid_tensor_bytes(tensor, result.padded) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  return result;
}

static padded_tensor describe_input(const braid_padded_run *run, int64_t index) {
  const braid_tensor_v2 *tensor = &run->model->inputs[index];
  return describe(tensor, run->env->input_shapes[index], tensor->shape, run->variant->sizes);
}

static padded_tensor describe_output(const braid_padded_run *run, int64_t index) {
  return describe(&run->model->outputs[index], run->env->output_shapes[index],
                  run->variant->output_shapes[index], run->variant->sizes);
}

/* The pointers for the code come first, then the copies. */
static bool reserve(const braid_padded_run *run, braid_staging *staging, size_t *first) {
  size_t pointers = (size_t)(run->model->input_count + run->model->output_count);
  size_t needed = (pointers * sizeof(void *) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  *first = needed;
  for (int64_t i = 0; i < run->model->input_count; ++i)
    needed += describe_input(run, i).bytes;
  for (int64_t i = 0; i < run->model->output_count; ++i)
    needed += describe_output(run, i).bytes;
  if (needed <= staging->bytes)
    return true;
  free(staging->memory);
  staging->bytes = posix_memalign(&staging->memory, ALIGNMENT, needed) == 0 ? needed : 0;
  if (staging->bytes == 0) {
    staging->memory = NULL;
    run->env->fail(run->env, "out of memory for the padded inputs and outputs");
  }
  return staging->bytes != 0;
}

int32_t braid_run_padded(const braid_padded_run *run, braid_staging *staging) {
  size_t first;
  if (!reserve(run, staging, &first))
    return -1;
  int64_t input_count = run->model->input_count, output_count = run->model->output_count;
  void **inputs = staging->memory, **outputs = inputs + input_count;
  char *next = (char *)staging->memory + first;
  for (int64_t i = 0; i < input_count; ++i) {
    padded_tensor input = describe_input(run, i);
    inputs[i] = input.bytes > 0 ? next : run->inputs[i];
    if (input.bytes > 0) {
      memset(next, 0, input.bytes);
      braid_copy_common(input.tensor, next, input.padded, run->inputs[i], input.actual);
    }
    next += input.bytes;
  }
  for (int64_t i = 0; i < output_count; ++i) {
    padded_tensor output = describe_output(run, i);
    outputs[i] = output.bytes > 0 ? next : run->outputs[i];
    next += output.bytes;
  }
  int32_t status = run->variant->run(run->env, inputs, outputs, run->weights, run->arena);
  for (int64_t i = 0; status == 0 && i < output_count; ++i) {
    padded_tensor output = describe_output(run, i);
    if (output.bytes > 0)
      braid_copy_common(output.tensor, run->outputs[i], output.actual, outputs[i], output.padded);
  }
  return status;
}
