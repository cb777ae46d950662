/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Opening and closing streams, and handing requests in and results out. */
#define _GNU_SOURCE
#include "request_streams.h"

#include "float_mode.h"
#include "waiting.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER UINT64_MAX

/* ---- Opening and closing ---- */

static bool start_worker(braid_stream_t *stream, braid_stream_worker *worker) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all); /* handlers of the program run in threads of the program */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker->live = pthread_create(&thread, &attributes, braid_stream_serve, worker) == 0;
  if (worker->live)
    pthread_setname_np(thread, "braid-stream");
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  stream->references += worker->live;
  return worker->live;
}

static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* Whether a worker has any stage. */
static bool has_work(const braid_stream_t *stream, int64_t worker) {
  for (int64_t i = 0; i < stream->stage_count; ++i)
    if (stream->stages[i].functions[worker] >= 0)
      return true;
  return false;
}

static bool start_workers(braid_stream_t *stream) {
  bool started = true;
  pthread_mutex_lock(&stream->lock);
  for (int64_t i = 0; started && i < stream->worker_count; ++i)
    started = !has_work(stream, i) || start_worker(stream, &stream->workers[i]);
  pthread_mutex_unlock(&stream->lock);
  if (!started)
    braid_set_error("the system gives no more thread for a stream");
  return started;
}

static braid_stream_t *new_stream(braid_model_t *model, const braid_stream_options *options) {
  braid_context_t *context = braid_context_create(model, options->threads);
  if (context == NULL)
    return NULL;
  braid_stream_t *stream = calloc(1, sizeof *stream);
  if (stream == NULL) {
    braid_context_close(context);
    braid_set_error("out of memory for a stream");
    return NULL;
  }
  braid_model_retain(model);
  stream->model = model;
  stream->context = context;
  stream->owner = getpid();
  stream->deadline = (uint64_t)options->deadline;
  stream->goes_on = options->goes_on != 0;
  stream->float_mode = braid_float_mode();
  stream->references = 1;
  stream->last = INT64_MAX;
  return stream;
}

/* The context of stages that the host runs, which launch functions themselves: they take arenas of
 * devices, as other stages do at the same time. */
static bool make_host(braid_stream_t *stream, int64_t threads) {
  const braid_model_v2 *model = stream->model->descriptor;
  for (int64_t i = 0; stream->host == NULL && i < model->stage_count; ++i)
    if (model->functions[model->stages[i].function].on_caller &&
        (stream->host = braid_context_create(stream->model, threads)) == NULL)
      return false;
  return true;
}

braid_stream_t *braid_stream_open(braid_model_t *model, const braid_stream_options *options) {
  static const braid_stream_options plain = {.threads = 1};
  if (options == NULL)
    options = &plain;
  if (model == NULL || options->deadline < 0) {
    braid_set_error(model == NULL ? "the model is NULL" : "the deadline is negative");
    return NULL;
  }
  if (!braid_weights_are_intact(model))
    return NULL;
  braid_stream_t *stream = new_stream(model, options);
  if (stream == NULL)
    return NULL;
  if (!make_host(stream, options->threads) || !braid_stream_build(stream)) {
    braid_stream_free(stream);
    return NULL;
  }
  pthread_mutex_init(&stream->lock, NULL);
  init_condition(&stream->changed);
  for (int64_t i = 0; i < stream->worker_count; ++i) {
    init_condition(&stream->workers[i].wake);
    stream->workers[i].stream = stream;
    stream->workers[i].running = -1;
  }
  if (!start_workers(stream)) {
    braid_stream_close(stream);
    return NULL;
  }
  return stream;
}

void braid_stream_release(braid_stream_t *stream) {
  bool last = --stream->references == 0;
  pthread_mutex_unlock(&stream->lock);
  if (!last)
    return;
  for (int64_t i = 0; i < stream->worker_count; ++i)
    pthread_cond_destroy(&stream->workers[i].wake);
  pthread_cond_destroy(&stream->changed);
  pthread_mutex_destroy(&stream->lock);
  braid_stream_free(stream);
}

/* ---- Deadlines; with the lock ---- */

static uint64_t deadline_of(const braid_stream_t *stream, const braid_stream_worker *worker) {
  if (!worker->live || worker->running < 0 || stream->deadline == 0)
    return NEVER;
  return worker->since + stream->deadline;
}

static void lose(braid_stream_t *stream, const braid_stream_worker *worker) {
  const braid_model_v2 *model = stream->model->descriptor;
  double seconds = (double)stream->deadline * 1e-9;
  if (braid_has_stages(model)) {
    int64_t number = stream->stages[worker->running].functions[worker - stream->workers];
    const braid_function_v1 *function = &model->functions[number];
    snprintf(stream->lost, sizeof stream->lost,
             "'@%s' on '%s' has not ended in %g s, its deadline; the stream is lost",
             function->name, model->devices[function->device].name, seconds);
  } else {
    snprintf(stream->lost, sizeof stream->lost,
             "the model has not ended in %g s, its deadline; the stream is lost", seconds);
  }
  for (int64_t i = 0; i < stream->worker_count; ++i)
    pthread_cond_signal(&stream->workers[i].wake);
  pthread_cond_broadcast(&stream->changed);
}

/* Loses the stream where a launch is late; when the next one is. */
static uint64_t check_deadlines(braid_stream_t *stream) {
  uint64_t next = NEVER, now = braid_now();
  for (int64_t i = 0; i < stream->worker_count; ++i) {
    uint64_t own = deadline_of(stream, &stream->workers[i]);
    if (own <= now && stream->lost[0] == '\0')
      lose(stream, &stream->workers[i]);
    next = own < next ? own : next;
  }
  return next;
}

/* A worker that begins meanwhile has its whole deadline before it: to look after that long will do.
 */
static void wait_for_change(braid_stream_t *stream, uint64_t until) {
  uint64_t latest = stream->deadline == 0 ? NEVER : braid_now() + stream->deadline;
  until = until < latest ? until : latest;
  if (until == NEVER) {
    pthread_cond_wait(&stream->changed, &stream->lock);
    return;
  }
  struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
  pthread_cond_timedwait(&stream->changed, &stream->lock, &time);
}

/* Those that live and are not beyond their deadlines. */
static bool must_be_waited_for(const braid_stream_t *stream, uint64_t now) {
  for (int64_t i = 0; i < stream->worker_count; ++i)
    if (stream->workers[i].live && deadline_of(stream, &stream->workers[i]) > now)
      return true;
  return false;
}

int braid_stream_close(braid_stream_t *stream) {
  if (stream == NULL || getpid() != stream->owner)
    return 0; /* a child has none of the threads, and the locks that they held stay locked */
  pthread_mutex_lock(&stream->lock);
  stream->closing = true;
  for (int64_t i = 0; i < stream->worker_count; ++i)
    pthread_cond_signal(&stream->workers[i].wake);
  pthread_cond_broadcast(&stream->changed);
  while (must_be_waited_for(stream, braid_now())) {
    uint64_t next = NEVER;
    for (int64_t i = 0; i < stream->worker_count; ++i) {
      uint64_t own = deadline_of(stream, &stream->workers[i]);
      next = own > braid_now() && own < next ? own : next;
    }
    wait_for_change(stream, next);
  }
  bool late = false;
  for (int64_t i = 0; i < stream->worker_count; ++i)
    late |= stream->workers[i].live;
  braid_stream_release(stream);
  return late;
}

/* ---- Requests ---- */

/* Sets the error and returns true where the stream is not there. */
static bool is_elsewhere(const braid_stream_t *stream) {
  if (stream == NULL)
    braid_set_error("the stream is NULL");
  else if (getpid() != stream->owner)
    braid_set_error("the stream belongs to the process that opened it, which has forked");
  else
    return false;
  return true;
}

int64_t braid_stream_capacity(const braid_stream_t *stream) {
  return is_elsewhere(stream) ? -1 : stream->capacity;
}

/* Called with the lock: takes over the data of the next request. */
static void hand_in(braid_stream_t *stream, void *const *inputs, void *const *outputs,
                    const int64_t *const *shapes) {
  const braid_model_v2 *model = stream->model->descriptor;
  braid_request *request = &stream->requests[stream->pushed % stream->capacity];
  for (int64_t i = 0; i < model->input_count; ++i)
    request->buffers[i] = inputs[i];
  for (int64_t i = 0; i < model->output_count; ++i)
    request->buffers[model->input_count + i] = outputs[i];
  for (int64_t i = 0; request->shapes != NULL && i < model->input_count; ++i) {
    const int64_t *from = shapes != NULL ? shapes[i] : model->inputs[i].bound;
    if (model->inputs[i].rank > 0)
      memcpy(request->shapes[i], from, (size_t)model->inputs[i].rank * sizeof *from);
  }
  request->failed = false;
  ++stream->pushed;
  for (int64_t i = 0; i < stream->worker_count; ++i)
    pthread_cond_signal(&stream->workers[i].wake);
}

/* Whether there is what must be read of a request at once; false and the error set where not. A run
 * of the whole model checks the contents of the lists. */
static bool has_lists(const braid_model_v2 *model, void *const *inputs, void *const *outputs,
                      const int64_t *const *shapes) {
  if ((inputs == NULL && model->input_count > 0) || (outputs == NULL && model->output_count > 0)) {
    braid_set_error("the list of %s is NULL", inputs == NULL ? "inputs" : "outputs");
    return false;
  }
  for (int64_t i = 0; shapes != NULL && i < model->input_count; ++i)
    if (shapes[i] == NULL && model->inputs[i].rank > 0) {
      braid_set_error("input '%s': its shape is NULL", model->inputs[i].name);
      return false;
    }
  return true;
}

int braid_stream_push(braid_stream_t *stream, void *const *inputs, void *const *outputs,
                      const int64_t *const *shapes) {
  if (is_elsewhere(stream))
    return 1;
  const braid_model_v2 *model = stream->model->descriptor;
  if (!has_lists(model, inputs, outputs, shapes) ||
      (braid_has_stages(model) && !braid_check_ports(model, inputs, outputs)))
    return 1;
  pthread_mutex_lock(&stream->lock);
  for (;;) {
    uint64_t next = check_deadlines(stream);
    if (stream->lost[0] != '\0' || stream->closing || stream->last < INT64_MAX ||
        stream->pushed - stream->popped < stream->capacity)
      break;
    wait_for_change(stream, next);
  }
  bool ended = stream->closing || stream->last < INT64_MAX;
  if (stream->lost[0] != '\0')
    braid_set_error("%s", stream->lost);
  else if (ended && stream->popped <= stream->last && stream->last < INT64_MAX)
    braid_set_error("the stream has ended: %s",
                    stream->requests[stream->last % stream->capacity].error);
  else if (ended)
    braid_set_error("the stream has ended");
  else
    hand_in(stream, inputs, outputs, shapes);
  ended = ended || stream->lost[0] != '\0';
  pthread_mutex_unlock(&stream->lock);
  return ended;
}

/* Called with the lock: releases the oldest request, which is finished. */
static int take(braid_stream_t *stream) {
  const braid_model_v2 *model = stream->model->descriptor;
  braid_request *request = &stream->requests[stream->popped % stream->capacity];
  ++stream->popped;
  pthread_cond_broadcast(&stream->changed);
  for (int64_t i = 0; request->shapes != NULL && i < model->output_count; ++i)
    if (model->outputs[i].rank > 0)
      memcpy(stream->taken_shapes[model->input_count + i], request->shapes[model->input_count + i],
             (size_t)model->outputs[i].rank * sizeof(int64_t));
  if (!request->failed)
    return BRAID_STREAM_DONE;
  braid_set_error("%s", request->error);
  return BRAID_STREAM_FAILED;
}

int braid_stream_pop(braid_stream_t *stream, int64_t timeout) {
  if (is_elsewhere(stream))
    return BRAID_STREAM_FAILED;
  uint64_t until = timeout < 0 ? NEVER : braid_now() + (uint64_t)timeout;
  int result = -1;
  pthread_mutex_lock(&stream->lock);
  while (result < 0) {
    uint64_t next = check_deadlines(stream);
    if (stream->closing || stream->popped == stream->pushed || stream->popped > stream->last) {
      result = BRAID_STREAM_EMPTY;
    } else if (braid_stream_finished(stream) > stream->popped) {
      result = take(stream);
    } else if (stream->lost[0] != '\0') {
      braid_set_error("%s", stream->lost);
      result = BRAID_STREAM_LOST;
    } else if (braid_now() >= until) {
      result = BRAID_STREAM_LATER;
    } else {
      wait_for_change(stream, next < until ? next : until);
    }
  }
  pthread_mutex_unlock(&stream->lock);
  return result;
}

const int64_t *braid_stream_output_shape(const braid_stream_t *stream, int64_t index) {
  if (is_elsewhere(stream))
    return NULL;
  const braid_model_v2 *model = stream->model->descriptor;
  if (index >= 0 && index < model->output_count)
    return stream->taken_shapes[model->input_count + index];
  braid_set_error("the model has %lld outputs, there is no output %lld",
                  (long long)model->output_count, (long long)index);
  return NULL;
}

int braid_stream_stage(braid_stream_t *stream, int64_t index, int64_t *count,
                       int64_t *nanoseconds) {
  if (is_elsewhere(stream))
    return 1;
  if (index < 0 || index >= stream->stage_count || count == NULL || nanoseconds == NULL) {
    braid_set_error("the stream has %lld stages, there is no stage %lld",
                    (long long)stream->stage_count, (long long)index);
    return 1;
  }
  pthread_mutex_lock(&stream->lock);
  *count = stream->stages[index].done;
  *nanoseconds = stream->stages[index].nanoseconds;
  pthread_mutex_unlock(&stream->lock);
  return 0;
}

int braid_stream_profile(braid_stream_t *stream, uint64_t *counts, uint64_t *times) {
  if (is_elsewhere(stream))
    return 1;
  if (counts == NULL || times == NULL) {
    braid_set_error("the list of %s is NULL", counts == NULL ? "counts" : "times");
    return 1;
  }
  pthread_mutex_lock(&stream->lock);
  for (int64_t k = 0; k < stream->model->descriptor->counter_count; ++k) {
    counts[k] += stream->counts[k];
    times[k] += stream->times[k];
  }
  pthread_mutex_unlock(&stream->lock);
  return 0;
}

int braid_stream_set_trace(braid_stream_t *stream, braid_trace_t *trace) {
  if (is_elsewhere(stream))
    return 1;
  pthread_mutex_lock(&stream->lock);
  bool is_idle = stream->popped == stream->pushed;
  if (!is_idle)
    braid_set_error("requests of the stream are under way, and a trace begins between them");
  bool set = is_idle && braid_context_set_trace(stream->context, trace) == 0 &&
             (stream->host == NULL || braid_context_set_trace(stream->host, trace) == 0);
  if (set)
    stream->trace = trace;
  pthread_mutex_unlock(&stream->lock);
  return !set;
}

void braid_stream_profile_reset(braid_stream_t *stream) {
  if (is_elsewhere(stream))
    return;
  size_t bytes = (size_t)stream->model->descriptor->counter_count * sizeof *stream->counts;
  pthread_mutex_lock(&stream->lock);
  memset(stream->counts, 0, bytes);
  memset(stream->times, 0, bytes);
  pthread_mutex_unlock(&stream->lock);
}
