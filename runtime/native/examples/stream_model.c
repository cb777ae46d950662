/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads an artifact and runs a stream of requests through it: the first input of request i is a
 * ramp plus i. Prints the norm of the first output of each request, in order, and the times of the
 * stages.
 *
 *   cc stream_model.c -I include -L build -lbraid_runtime -lm -o stream_model
 *   ./stream_model model.braid [requests]
 */
#include <braid/runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { F32 = 1 };

/* Buffers of one request, used again by the one that takes its place. */
typedef struct request {
  void **inputs, **outputs;
} request;

static int64_t elements(const braid_tensor_v2 *tensor) {
  int64_t count = 1;
  for (int64_t d = 0; d < tensor->rank; ++d)
    count *= tensor->bound[d];
  return count;
}

static void **create_buffers(int64_t count, const braid_tensor_v2 *tensors) {
  void **buffers = calloc((size_t)count + 1, sizeof *buffers);
  for (int64_t i = 0; buffers != NULL && i < count; ++i) {
    buffers[i] = calloc((size_t)elements(&tensors[i]) + 1, sizeof(float));
    if (tensors[i].dtype != F32 || buffers[i] == NULL) {
      fprintf(stderr, "stream_model: '%s' is not f32, or there is no memory\n", tensors[i].name);
      exit(1);
    }
  }
  return buffers;
}

static void free_buffers(int64_t count, void **buffers) {
  for (int64_t i = 0; buffers != NULL && i < count; ++i)
    free(buffers[i]);
  free(buffers);
}

static int push(braid_stream_t *stream, const braid_model_v2 *model, request *own, int64_t number) {
  if (own->inputs == NULL) {
    own->inputs = create_buffers(model->input_count, model->inputs);
    own->outputs = create_buffers(model->output_count, model->outputs);
  }
  float *first = own->inputs[0];
  for (int64_t i = 0; i < elements(&model->inputs[0]); ++i)
    first[i] = (float)(i % 17) / 16.0f + (float)number;
  return braid_stream_push(stream, own->inputs, own->outputs, NULL);
}

/* 0 where the request is done. */
static int pop(braid_stream_t *stream, const braid_model_v2 *model, const request *own,
               int64_t number) {
  if (braid_stream_pop(stream, -1) != BRAID_STREAM_DONE)
    return 1;
  const float *first = own->outputs[0];
  double sum = 0.0;
  for (int64_t i = 0; i < elements(&model->outputs[0]); ++i)
    sum += (double)first[i] * first[i];
  printf("%lld: %.6g\n", (long long)number, sqrt(sum));
  return 0;
}

static void print_stages(braid_stream_t *stream, const braid_model_v2 *model) {
  for (int64_t i = 0; i < model->stage_count; ++i) {
    const braid_stage_v1 *stage = &model->stages[i];
    const braid_function_v1 *function = &model->functions[stage->function];
    int64_t count = 0, nanoseconds = 0;
    braid_stream_stage(stream, i, &count, &nanoseconds);
    fprintf(stderr, "@%s on %s", function->name, model->devices[function->device].name);
    for (int64_t k = 0; k < stage->replica_count; ++k)
      fprintf(stderr, " and %s", model->devices[model->functions[stage->replicas[k]].device].name);
    fprintf(stderr, ": %lld times, %.3f ms each\n", (long long)count,
            count > 0 ? 1e-6 * (double)nanoseconds / (double)count : 0.0);
  }
}

static int run(braid_stream_t *stream, const braid_model_v2 *model, int64_t count) {
  int64_t capacity = braid_stream_capacity(stream), pushed = 0, popped = 0;
  request *requests = calloc((size_t)capacity, sizeof *requests);
  int status = requests == NULL || model->input_count == 0 || model->output_count == 0;
  while (status == 0 && popped < count) {
    if (pushed < count && pushed - popped < capacity) {
      status = push(stream, model, &requests[pushed % capacity], pushed);
      ++pushed;
    } else {
      status = pop(stream, model, &requests[popped % capacity], popped);
      ++popped;
    }
  }
  print_stages(stream, model);
  if (status != 0)
    fprintf(stderr, "stream_model: error: %s\n", braid_last_error());
  if (braid_stream_close(stream) != 0)
    return 1; /* a launch is beyond its deadline, and may still use the buffers */
  for (int64_t i = 0; requests != NULL && i < capacity; ++i) {
    free_buffers(model->input_count, requests[i].inputs);
    free_buffers(model->output_count, requests[i].outputs);
  }
  free(requests);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: stream_model MODEL.braid [REQUESTS]\n");
    return 2;
  }
  braid_model_t *model = braid_model_open(argv[1]);
  braid_stream_options options = {.threads = 1, .deadline = 60000000000};
  braid_stream_t *stream = model != NULL ? braid_stream_open(model, &options) : NULL;
  int status = 1;
  if (stream != NULL)
    status = run(stream, braid_model_describe(model), argc > 2 ? atoll(argv[2]) : 10);
  else
    fprintf(stderr, "stream_model: error: %s\n", braid_last_error());
  braid_model_close(model);
  return status;
}
