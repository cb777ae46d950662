/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The threads of a stream: each runs, among its stages that can begin, the one with the oldest
 * request. A request that has failed passes the rest of its stages without being run.
 */
#define _GNU_SOURCE
#include "request_streams.h"

#include "float_mode.h"
#include "waiting.h"

#include <stdio.h>
#include <string.h>

int64_t braid_stream_finished(const braid_stream_t *stream) {
  int64_t least = stream->stages[0].done;
  for (int64_t i = 1; i < stream->stage_count; ++i)
    least = stream->stages[i].done < least ? stream->stages[i].done : least;
  return least;
}

/* Whether a stage has ended with a request. */
static bool has_ended(const braid_stream_t *stream, int64_t stage, int64_t number) {
  const braid_stage_state *state = &stream->stages[stage];
  return number < state->done || (number < state->begun && state->ended[number % stream->capacity]);
}

static bool can_begin(const braid_stream_t *stream, const braid_stage_state *stage) {
  if (stage->begun >= stream->pushed)
    return false;
  for (int64_t i = 0; i < stage->need_count; ++i)
    if (!has_ended(stream, stage->needs[i].stage, stage->begun - stage->needs[i].lag))
      return false;
  return true;
}

/* The stage to run next; -1 for none. */
static int64_t choose(const braid_stream_t *stream, int64_t worker) {
  int64_t best = -1;
  for (int64_t i = 0; i < stream->stage_count; ++i) {
    const braid_stage_state *stage = &stream->stages[i];
    if (stage->functions[worker] >= 0 && can_begin(stream, stage) &&
        (best < 0 || stage->begun < stream->stages[best].begun))
      best = i;
  }
  return best;
}

/* The address of a buffer for a request. */
static void *address(const braid_stream_t *stream, int64_t buffer, int64_t number) {
  const braid_model_v2 *model = stream->model->descriptor;
  int64_t ports = model->input_count + model->output_count;
  if (buffer < ports)
    return stream->requests[number % stream->capacity].buffers[buffer];
  const braid_channel_v1 *channel = &model->channels[buffer - ports];
  return stream->slots[buffer - ports] +
         braid_slot_stride(channel) * (size_t)(number % channel->slots);
}

static bool run_stage(braid_stream_t *stream, const braid_stream_worker *worker, int64_t index,
                      int64_t number, char *error) {
  const braid_model_v2 *model = stream->model->descriptor;
  const braid_stage_v1 *stage = &model->stages[index];
  int64_t own = stream->stages[index].functions[worker - stream->workers];
  const braid_function_v1 *function = &model->functions[own];
  void **buffers = worker->buffers;
  for (int64_t i = 0; i < function->input_count; ++i)
    buffers[i] = address(stream, stage->inputs[i], number);
  for (int64_t i = 0; i < function->output_count; ++i)
    buffers[function->input_count + i] = address(stream, stage->outputs[i], number);
  if (!function->on_caller)
    return braid_launches_stage(braid_launches_of(stream->context), own, buffers,
                                stream->float_mode, error, BRAID_STREAM_ERROR) == 0;
  braid_set_float_mode(stream->float_mode);
  char reason[BRAID_STREAM_ERROR] = "";
  if (braid_context_run_function(stream->host, own, buffers, reason, sizeof reason))
    return true;
  snprintf(error, BRAID_STREAM_ERROR, "in '@%.100s' of the host: %.380s", function->name, reason);
  return false;
}

/* Runs the model as a whole. */
static bool run_whole(braid_stream_t *stream, int64_t number, char *error) {
  const braid_model_v2 *model = stream->model->descriptor;
  braid_request *request = &stream->requests[number % stream->capacity];
  braid_set_float_mode(stream->float_mode);
  bool runs = true;
  for (int64_t i = 0; runs && request->shapes != NULL && i < model->input_count; ++i)
    runs = braid_context_set_input_shape(stream->context, i, request->shapes[i]) == 0;
  runs = runs && braid_context_run(stream->context, request->buffers,
                                   request->buffers + model->input_count) == 0;
  if (!runs)
    snprintf(error, BRAID_STREAM_ERROR, "%s", braid_last_error());
  for (int64_t i = 0; runs && request->shapes != NULL && i < model->output_count; ++i)
    memcpy(request->shapes[model->input_count + i], braid_context_output_shape(stream->context, i),
           (size_t)model->outputs[i].rank * sizeof(int64_t));
  return runs;
}

/* Takes over what a context has counted. */
static void collect_context(braid_stream_t *stream, braid_context_t *context) {
  uint64_t *counts = (uint64_t *)(uintptr_t)braid_context_profile_counts(context);
  uint64_t *times = (uint64_t *)(uintptr_t)braid_context_profile_times(context);
  for (int64_t k = 0; k < stream->model->descriptor->counter_count; ++k) {
    stream->counts[k] += counts[k];
    stream->times[k] += times[k];
    counts[k] = times[k] = 0;
  }
}

/* Called with the lock: adds the counters of a worker's run of a stage, where no other thread
 * runs. */
static void collect(braid_stream_t *stream, const braid_stream_worker *worker, int64_t index) {
  const braid_model_v2 *model = stream->model->descriptor;
  int64_t number = stream->stages[index].functions[worker - stream->workers];
  if (model->counter_count == 0)
    return;
  if (!braid_has_stages(model))
    collect_context(stream, stream->context);
  else if (model->functions[number].on_caller)
    collect_context(stream, stream->host);
  else
    braid_launches_collect(braid_launches_of(stream->context), model->functions[number].device,
                           stream->counts, stream->times);
}

/* Called with the lock, which is released while the stage runs. */
static void run_request(braid_stream_t *stream, braid_stream_worker *worker, int64_t index,
                        int64_t number) {
  braid_stage_state *stage = &stream->stages[index];
  braid_request *request = &stream->requests[number % stream->capacity];
  if (request->failed || number > stream->last)
    return;
  char error[BRAID_STREAM_ERROR] = "";
  worker->running = index;
  worker->since = braid_now();
  pthread_mutex_unlock(&stream->lock);
  bool done = braid_has_stages(stream->model->descriptor)
                  ? run_stage(stream, worker, index, number, error)
                  : run_whole(stream, number, error);
  pthread_mutex_lock(&stream->lock);
  stage->nanoseconds += (int64_t)(braid_now() - worker->since);
  braid_trace_end(stream->trace, BRAID_TRACE_STAGE, index, number, worker->since);
  worker->running = -1;
  collect(stream, worker, index);
  if (done)
    return;
  if (!request->failed)
    memcpy(request->error, error, sizeof error);
  request->failed = true;
  if (!stream->goes_on && number < stream->last)
    stream->last = number;
}

/* Called with the lock, which is released while the stage runs on the next request. */
static void run_next(braid_stream_t *stream, braid_stream_worker *worker, int64_t index) {
  braid_stage_state *stage = &stream->stages[index];
  int64_t number = stage->begun++;
  stage->ended[number % stream->capacity] = false;
  run_request(stream, worker, index, number);
  stage->ended[number % stream->capacity] = true;
  while (stage->done < stage->begun && stage->ended[stage->done % stream->capacity])
    ++stage->done;
}

static void wake_others(braid_stream_t *stream, const braid_stream_worker *self) {
  for (int64_t i = 0; i < stream->worker_count; ++i)
    if (&stream->workers[i] != self)
      pthread_cond_signal(&stream->workers[i].wake);
}

void *braid_stream_serve(void *argument) {
  braid_stream_worker *self = argument;
  braid_stream_t *stream = self->stream;
  int64_t number = self - stream->workers;
  pthread_mutex_lock(&stream->lock);
  while (!stream->closing && stream->lost[0] == '\0') {
    int64_t index = choose(stream, number);
    if (index < 0) {
      pthread_cond_wait(&self->wake, &stream->lock);
      continue;
    }
    run_next(stream, self, index);
    wake_others(stream, self);
    pthread_cond_broadcast(&stream->changed);
  }
  self->live = false;
  pthread_cond_broadcast(&stream->changed);
  braid_stream_release(stream);
  return NULL;
}
