/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The parts of which a stream is built. */
#define _GNU_SOURCE
#include "request_streams.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64, REQUESTS_OF_A_WHOLE = 3 }; /* one runs, one waits, one is to be taken */

/* Zero where the sizes are too large. */
static void *zeroed(size_t count, size_t size) { return calloc(count > 0 ? count : 1, size); }

static bool has_open_dims(int64_t count, const braid_tensor_v2 *tensors) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 0; d < tensors[i].rank; ++d)
      if (tensors[i].shape[d] < 0)
        return true;
  return false;
}

/* Rows of sizes for all inputs and outputs, at their upper bounds, in one allocation. */
static int64_t **new_shapes(const braid_model_v2 *model) {
  int64_t ports = model->input_count + model->output_count;
  size_t dims = 0;
  for (int64_t i = 0; i < ports; ++i)
    dims += (size_t)(i < model->input_count ? &model->inputs[i]
                                            : &model->outputs[i - model->input_count])
                ->rank;
  int64_t **rows = malloc((size_t)ports * sizeof *rows + dims * sizeof **rows + 1);
  if (rows == NULL)
    return NULL;
  int64_t *next = (int64_t *)(rows + ports);
  for (int64_t i = 0; i < ports; ++i) {
    const braid_tensor_v2 *tensor =
        i < model->input_count ? &model->inputs[i] : &model->outputs[i - model->input_count];
    rows[i] = next;
    if (tensor->rank > 0)
      memcpy(next, tensor->bound, (size_t)tensor->rank * sizeof *next);
    next += tensor->rank;
  }
  return rows;
}

static bool build_requests(braid_stream_t *stream) {
  const braid_model_v2 *model = stream->model->descriptor;
  bool open = has_open_dims(model->input_count, model->inputs) ||
              has_open_dims(model->output_count, model->outputs);
  size_t ports = (size_t)(model->input_count + model->output_count);
  stream->capacity = braid_has_stages(model) ? model->requests : REQUESTS_OF_A_WHOLE;
  stream->requests = zeroed((size_t)stream->capacity, sizeof *stream->requests);
  stream->taken_shapes = new_shapes(model);
  if (stream->requests == NULL || stream->taken_shapes == NULL)
    return false;
  for (int64_t i = 0; i < stream->capacity; ++i) {
    braid_request *request = &stream->requests[i];
    request->buffers = zeroed(ports, sizeof(void *));
    if (request->buffers == NULL || (open && (request->shapes = new_shapes(model)) == NULL))
      return false;
  }
  return true;
}

static bool build_slots(braid_stream_t *stream) {
  const braid_model_v2 *model = stream->model->descriptor;
  stream->slots = zeroed((size_t)model->channel_count, sizeof *stream->slots);
  for (int64_t i = 0; stream->slots != NULL && i < model->channel_count; ++i) {
    const braid_channel_v1 *channel = &model->channels[i];
    size_t bytes = braid_slot_stride(channel) * (size_t)channel->slots;
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGN, bytes > 0 ? bytes : 1) != 0)
      return false;
    stream->slots[i] = memory;
  }
  return stream->slots != NULL;
}

/* The stage that writes a buffer; -1 for an input of the model. */
static int64_t writer_of(const braid_model_v2 *model, int64_t buffer) {
  for (int64_t i = 0; i < model->stage_count; ++i) {
    const braid_stage_v1 *stage = &model->stages[i];
    for (int64_t k = 0; k < model->functions[stage->function].output_count; ++k)
      if (stage->outputs[k] == buffer)
        return i;
  }
  return -1;
}

static bool reads(const braid_model_v2 *model, int64_t stage, int64_t buffer) {
  const braid_stage_v1 *own = &model->stages[stage];
  for (int64_t k = 0; k < model->functions[own->function].input_count; ++k)
    if (own->inputs[k] == buffer)
      return true;
  return false;
}

/* The other stages for which stage `number` waits: the writers of its operands and the readers of
 * its results. The first pass, without room, counts. */
static int64_t list_needs(const braid_model_v2 *model, int64_t number, braid_need *needs) {
  const braid_stage_v1 *stage = &model->stages[number];
  const braid_function_v1 *function = &model->functions[stage->function];
  int64_t ports = model->input_count + model->output_count, count = 0;
  for (int64_t k = 0; k < function->input_count; ++k) {
    int64_t writer = writer_of(model, stage->inputs[k]);
    if (writer < 0)
      continue;
    if (needs != NULL)
      needs[count] = (braid_need){writer, 0};
    ++count;
  }
  for (int64_t k = 0; k < function->output_count; ++k) {
    if (stage->outputs[k] < ports)
      continue;
    int64_t slots = model->channels[stage->outputs[k] - ports].slots;
    if (needs != NULL)
      needs[count] = (braid_need){number, slots}; /* nobody need read it */
    ++count;
    for (int64_t reader = number + 1; reader < model->stage_count; ++reader)
      if (reads(model, reader, stage->outputs[k])) {
        if (needs != NULL)
          needs[count] = (braid_need){reader, slots};
        ++count;
      }
  }
  return count;
}

/* Lets the worker of a function's device, or that of the host, run it as a stage. */
static void add_function(const braid_model_v2 *model, int64_t number, braid_stage_state *stage) {
  const braid_function_v1 *function = &model->functions[number];
  stage->functions[function->on_caller ? model->device_count : function->device] = number;
}

static bool build_stage(braid_stream_t *stream, int64_t number) {
  const braid_model_v2 *model = stream->model->descriptor;
  braid_stage_state *stage = &stream->stages[number];
  stage->functions = zeroed((size_t)stream->worker_count, sizeof *stage->functions);
  stage->ended = zeroed((size_t)stream->capacity, sizeof *stage->ended);
  if (stage->functions == NULL || stage->ended == NULL)
    return false;
  if (!braid_has_stages(model))
    return true; /* the only worker runs the only function there is */
  const braid_stage_v1 *described = &model->stages[number];
  for (int64_t i = 0; i < stream->worker_count; ++i)
    stage->functions[i] = -1;
  add_function(model, described->function, stage);
  for (int64_t i = 0; i < described->replica_count; ++i)
    add_function(model, described->replicas[i], stage);
  stage->need_count = list_needs(model, number, NULL);
  stage->needs = zeroed((size_t)stage->need_count, sizeof *stage->needs);
  if (stage->needs == NULL)
    return false;
  list_needs(model, number, stage->needs);
  return true;
}

/* Room for the buffers of any function that a worker runs. */
static bool build_worker(const braid_model_v2 *model, braid_stream_worker *worker) {
  int64_t most = 0;
  for (int64_t i = 0; i < model->function_count; ++i) {
    int64_t count = model->functions[i].input_count + model->functions[i].output_count;
    most = count > most ? count : most;
  }
  worker->buffers = zeroed((size_t)most, sizeof(void *));
  return worker->buffers != NULL;
}

bool braid_stream_build(braid_stream_t *stream) {
  const braid_model_v2 *model = stream->model->descriptor;
  bool staged = braid_has_stages(model);
  stream->stage_count = staged ? model->stage_count : 1;
  stream->worker_count = staged ? model->device_count + 1 : 1; /* the last one is the host */
  stream->stages = zeroed((size_t)stream->stage_count, sizeof *stream->stages);
  stream->workers = zeroed((size_t)stream->worker_count, sizeof *stream->workers);
  stream->counts = zeroed((size_t)model->counter_count, sizeof *stream->counts);
  stream->times = zeroed((size_t)model->counter_count, sizeof *stream->times);
  bool made = stream->stages != NULL && stream->workers != NULL && stream->counts != NULL &&
              stream->times != NULL && build_requests(stream) && (!staged || build_slots(stream));
  for (int64_t i = 0; made && i < stream->stage_count; ++i)
    made = build_stage(stream, i);
  for (int64_t i = 0; made && i < stream->worker_count; ++i)
    made = build_worker(model, &stream->workers[i]);
  if (!made)
    braid_set_error("out of memory for a stream");
  return made;
}

void braid_stream_free(braid_stream_t *stream) {
  const braid_model_v2 *model = stream->model->descriptor;
  for (int64_t i = 0; stream->stages != NULL && i < stream->stage_count; ++i) {
    free(stream->stages[i].functions);
    free(stream->stages[i].needs);
    free(stream->stages[i].ended);
  }
  for (int64_t i = 0; stream->workers != NULL && i < stream->worker_count; ++i)
    free(stream->workers[i].buffers);
  for (int64_t i = 0; stream->slots != NULL && i < model->channel_count; ++i)
    free(stream->slots[i]);
  for (int64_t i = 0; stream->requests != NULL && i < stream->capacity; ++i) {
    free(stream->requests[i].buffers);
    free(stream->requests[i].shapes);
  }
  free(stream->stages);
  free(stream->workers);
  free(stream->slots);
  free(stream->counts);
  free(stream->times);
  free(stream->requests);
  free(stream->taken_shapes);
  braid_context_close(stream->host);
  braid_context_close(stream->context);
  braid_model_close(stream->model);
  free(stream);
}
