/* Runs two models that were compiled to C libraries: classify (static) and scale (open batch).
 * Reads the inputs from stdin, writes the outputs to stdout; the batch is the argument. */
#include "classify.h"
#include "scale.h"

#include <stdio.h>
#include <stdlib.h>

static void *allocate(size_t bytes) {
  void *memory = calloc(1, bytes + 1);
  if (memory == NULL)
    exit(3);
  return memory;
}

static void *read_input(size_t bytes) {
  void *memory = allocate(bytes);
  if (fread(memory, 1, bytes, stdin) != bytes)
    exit(4);
  return memory;
}

static int run_classify(void) {
  classify_context *context = classify_create(1);
  const classify_inputs inputs = {
      .input_1 = read_input(classify_input_1_bytes),
      .m_int = read_input(classify_m_int_bytes),
  };
  const classify_outputs outputs = {
      .m_2nd = allocate(classify_m_2nd_bytes),
      .input_1_2 = allocate(classify_input_1_2_bytes),
  };
  int status = context == NULL || classify_run(context, &inputs, &outputs);
  if (status != 0)
    fprintf(stderr, "classify: %s\n", classify_error());
  fwrite(outputs.m_2nd, 1, classify_m_2nd_bytes, stdout);
  fwrite(outputs.input_1_2, 1, classify_input_1_2_bytes, stdout);
  classify_destroy(context);
  return status;
}

static int run_scale(int64_t batch) {
  scale_context *context = scale_create(2);
  const scale_dims dims = {.batch = batch};
  const scale_inputs inputs = {.x = read_input(scale_x_bytes(&dims))};
  const scale_outputs outputs = {.y = allocate(scale_y_bytes(&dims))};
  int status = context == NULL || scale_run(context, &dims, &inputs, &outputs);
  if (status != 0)
    fprintf(stderr, "scale: %s\n", scale_error());
  else if (scale_output_shape(context, 0)[0] != batch)
    status = 5;
  fwrite(outputs.y, 1, scale_y_bytes(&dims), stdout);
  scale_destroy(context);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  int status = run_classify();
  return status ? status : run_scale(atoll(argv[1]));
}
