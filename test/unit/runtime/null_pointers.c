/* null_pointers ARTIFACT: calls each function with NULL; prints what each says. The artifact has
 * one input and two outputs. */
#include <braid/runtime.h>

#include <stdio.h>

static int failures;

static void expect(int failed) {
  printf("%s\n", braid_last_error());
  failures += !failed;
}

int main(int argc, char **argv) {
  static float x[8000], y[8000], total;
  void *inputs[] = {x}, *outputs[] = {y, &total}, *none[] = {NULL, NULL};
  size_t size = 0;
  braid_model_t *model = braid_model_open(argv[argc - 1]);
  braid_context_t *context = braid_context_create(model, 1);
  expect(braid_model_open(NULL) == NULL);
  expect(braid_map_file(NULL, &size) == NULL);
  expect(braid_model_from_artifact(NULL, 100, "x") == NULL);
  expect(braid_model_from_artifact(x, 100, NULL) == NULL);
  expect(braid_model_from_memory(NULL, 100, NULL, 0) == NULL);
  expect(braid_model_from_descriptor(NULL, NULL, 0) == NULL);
  expect(braid_model_from_descriptor(braid_model_describe(model), NULL, 128) == NULL);
  expect(braid_model_describe(NULL) == NULL);
  expect(braid_context_create(NULL, 1) == NULL);
  expect(braid_context_set_input_shape(NULL, 0, NULL));
  expect(braid_context_set_input_shape(context, 0, NULL));
  expect(braid_context_output_shape(NULL, 0) == NULL);
  expect(braid_context_run(NULL, inputs, outputs));
  expect(braid_context_run(context, NULL, outputs));
  expect(braid_context_run(context, none, outputs));
  expect(braid_context_run(context, inputs, NULL));
  expect(braid_context_run(context, inputs, none));
  expect(braid_context_profile_counts(NULL) == NULL);
  expect(braid_context_profile_times(NULL) == NULL);
  expect(braid_context_profile_sizes(NULL, 0, NULL, NULL, NULL) == -1);
  const int64_t *no_shapes[] = {NULL};
  int64_t number = 0;
  braid_stream_t *stream = braid_stream_open(model, NULL);
  expect(braid_stream_open(NULL, NULL) == NULL);
  expect(braid_stream_open(model, &(braid_stream_options){.deadline = -1}) == NULL);
  expect(braid_stream_capacity(NULL) < 0);
  expect(braid_stream_push(NULL, inputs, outputs, NULL));
  expect(braid_stream_push(stream, NULL, outputs, NULL));
  expect(braid_stream_push(stream, inputs, NULL, NULL));
  expect(braid_stream_push(stream, inputs, outputs, no_shapes));
  expect(braid_stream_pop(NULL, 0) == BRAID_STREAM_FAILED);
  expect(braid_stream_output_shape(NULL, 0) == NULL);
  expect(braid_stream_output_shape(stream, 7) == NULL);
  expect(braid_stream_stage(stream, 7, &number, &number));
  expect(braid_stream_stage(stream, 0, NULL, &number));
  failures += braid_stream_pop(stream, -1) != BRAID_STREAM_EMPTY;
  /* What is missing in the lists fails when the request runs, and ends the stream. */
  failures += braid_stream_push(stream, none, outputs, NULL) != 0;
  expect(braid_stream_pop(stream, -1) == BRAID_STREAM_FAILED);
  expect(braid_stream_push(stream, inputs, outputs, NULL));
  failures += braid_stream_close(stream) + braid_stream_close(NULL);
  braid_context_profile_reset(NULL);
  braid_unmap_file(NULL, 0);
  braid_model_close(NULL);
  braid_context_close(NULL);
  failures += braid_context_run(context, inputs, outputs) != 0;
  braid_context_close(context);
  braid_model_close(model);
  return failures;
}
