/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches in the order in which they were submitted, by two threads: the feeder starts them on the
 * GPU, the drainer waits for their ends.
 */
#define _GNU_SOURCE
#include "../devices.h"
#include "device.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Launches ---- */

/* Stream `later` goes on when the event, recorded in stream `earlier`, is there. */
static bool chain(cuda_device *device, const waiting *own, event_kind event, stream_kind earlier,
                  stream_kind later, char *error, size_t size) {
  const cuda_gpu *gpu = &device->gpu;
  cuda_event recorded = own->slot->events[event];
  return CUDA_TRY(gpu, error, size, event_record, recorded, device->streams[earlier]) &&
         (earlier == later ||
          CUDA_TRY(gpu, error, size, stream_wait, device->streams[later], recorded, 0));
}

/* Memory that others have is used when what they have put into the legacy default stream so far has
 * ended, as DLPack has it; when a launch has ended, so has its use of that memory. */
static bool await_others(cuda_device *device, const waiting *own, char *error, size_t size) {
  const cuda_gpu *gpu = &device->gpu;
  cuda_event given = own->slot->events[EVENT_GIVEN];
  return !own->slot->given ||
         (CUDA_TRY(gpu, error, size, event_record, given, CUDA_STREAM_LEGACY) &&
          CUDA_TRY(gpu, error, size, stream_wait, device->streams[STREAM_COMPUTE], given, 0));
}

static bool start(cuda_device *device, const waiting *own, cuda_address *addresses, char *error,
                  size_t size) {
  const cuda_gpu *gpu = &device->gpu;
  const braid_device_model *model = braid_cuda_program_model(own->model->program);
  cuda_address *outputs = addresses + braid_cuda_function_of(own)->input_count;
  cuda_buffers buffers = {(cuda_address)(uintptr_t)own->submission->arena,
                          (cuda_address)(uintptr_t)model->weights, addresses, outputs};
  if (!braid_cuda_feed_inputs(device, own, addresses, error, size))
    return false;
  braid_cuda_choose_outputs(device, own, outputs);
  if (!await_others(device, own, error, size) ||
      !chain(device, own, EVENT_IN, STREAM_IN, STREAM_COMPUTE, error, size) ||
      !chain(device, own, EVENT_BEGIN, STREAM_COMPUTE, STREAM_COMPUTE, error, size))
    return false;
  pthread_mutex_lock(&device->graphs);
  bool started = braid_cuda_program_start(gpu, own->model->program, own->submission->function,
                                          &buffers, device->streams[STREAM_COMPUTE], error, size);
  pthread_mutex_unlock(&device->graphs);
  return started && chain(device, own, EVENT_COMPUTED, STREAM_COMPUTE, STREAM_OUT, error, size) &&
         braid_cuda_fetch_outputs(device, own, outputs, error, size) &&
         chain(device, own, EVENT_OUT, STREAM_OUT, STREAM_OUT, error, size);
}

static void fail_submission(braid_submission *submission, int32_t status, const char *error) {
  submission->status = status;
  snprintf(submission->error, sizeof submission->error, "%.*s", BRAID_DEVICE_ERROR - 1, error);
}

/* Of those that it waits for, the first that has failed. */
static const braid_submission *failed_before(const braid_submission *submission) {
  const braid_submission *failed = NULL;
  for (int64_t i = 0; i < submission->after_count; ++i) {
    const braid_submission *before = submission->after[i];
    before->plugin->wait(before->device, before->ticket);
    if (failed == NULL && before->status != 0)
      failed = before;
  }
  return failed;
}

/* Hands a launch to the GPU; `started` says whether all of it. */
static void feed(cuda_device *device, waiting *own) {
  char error[LONG_ERROR] = "out of memory";
  const braid_submission *failed = failed_before(own->submission);
  if (failed != NULL) {
    fail_submission(own->submission, failed->status, failed->error);
    return;
  }
  const braid_function_v1 *function = braid_cuda_function_of(own);
  cuda_address *addresses =
      calloc((size_t)(function->input_count + function->output_count) + 1, sizeof *addresses);
  own->slot->started = addresses != NULL && start(device, own, addresses, error, sizeof error);
  free(addresses);
  if (!own->slot->started)
    fail_submission(own->submission, -1, error);
}

/* Waits until the GPU has ended a launch, and gives its results. */
static void drain(cuda_device *device, waiting *own) {
  const cuda_gpu *gpu = &device->gpu;
  char error[LONG_ERROR];
  float milliseconds = 0;
  if (!own->slot->started) { /* parts of it may be under way */
    for (int s = 0; s < STREAMS; ++s)
      gpu->driver->stream_synchronize(device->streams[s]);
    return;
  }
  const cuda_event *events = own->slot->events;
  if (!CUDA_TRY(gpu, error, sizeof error, event_synchronize, events[EVENT_OUT]) ||
      !CUDA_TRY(gpu, error, sizeof error, event_elapsed, &milliseconds, events[EVENT_BEGIN],
                events[EVENT_COMPUTED])) {
    fail_submission(own->submission, -1, error);
    return;
  }
  own->submission->nanoseconds = (int64_t)((double)milliseconds * 1e6);
  braid_cuda_drain_outputs(device, own);
}

/* ---- Threads ---- */

static void *run_feeder(void *argument) {
  cuda_device *device = argument;
  char error[LONG_ERROR];
  bool entered = braid_cuda_enter(device, error, sizeof error);
  pthread_mutex_lock(&device->lock);
  for (;;) {
    while (device->fed == device->submitted && !device->closing)
      pthread_cond_wait(&device->changed, &device->lock);
    if (device->fed == device->submitted)
      break;
    waiting own = device->ring[device->fed % device->capacity];
    own.slot = &own.model->slots[own.model->next_slot];
    own.model->next_slot = (own.model->next_slot + 1) % SLOTS;
    while (own.slot->submission != NULL)
      pthread_cond_wait(&device->changed, &device->lock);
    own.slot->submission = own.submission;
    own.slot->started = own.slot->given = false;
    pthread_mutex_unlock(&device->lock);
    if (entered)
      feed(device, &own);
    else
      fail_submission(own.submission, -1, error);
    pthread_mutex_lock(&device->lock);
    device->ring[device->fed % device->capacity].slot = own.slot;
    ++device->fed;
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  if (entered)
    braid_cuda_leave(device);
  return NULL;
}

static void *run_drainer(void *argument) {
  cuda_device *device = argument;
  char error[LONG_ERROR];
  bool entered = braid_cuda_enter(device, error, sizeof error);
  pthread_mutex_lock(&device->lock);
  for (;;) {
    while (device->ended == device->fed && !(device->closing && device->ended == device->submitted))
      pthread_cond_wait(&device->changed, &device->lock);
    if (device->ended == device->fed)
      break;
    waiting own = device->ring[device->ended % device->capacity];
    pthread_mutex_unlock(&device->lock);
    if (entered)
      drain(device, &own);
    else
      fail_submission(own.submission, -1, error);
    pthread_mutex_lock(&device->lock);
    own.slot->submission = NULL;
    ++device->ended;
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  if (entered)
    braid_cuda_leave(device);
  return NULL;
}

/* With the lock. */
static bool start_threads(cuda_device *device) {
  if (device->threads)
    return true;
  sigset_t all, before;
  sigfillset(&all); /* handlers of the program run in threads of the program */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  device->threads = pthread_create(&device->feeder, NULL, run_feeder, device) == 0;
  if (device->threads && pthread_create(&device->drainer, NULL, run_drainer, device) != 0) {
    device->closing = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->feeder, NULL);
    pthread_mutex_lock(&device->lock);
    device->closing = device->threads = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return device->threads;
}

/* ---- Calls of the plugin ---- */

/* With the lock: room for one more that has not ended. */
static bool grow(cuda_device *device) {
  if (device->submitted - device->ended < device->capacity)
    return true;
  int64_t capacity = 2 * device->capacity + 16;
  waiting *ring = malloc((size_t)capacity * sizeof *ring);
  if (ring == NULL)
    return false;
  for (int64_t n = device->ended; n < device->submitted; ++n)
    ring[n % capacity] = device->ring[n % device->capacity];
  free(device->ring);
  device->ring = ring;
  device->capacity = capacity;
  return true;
}

int braid_cuda_submit(void *opened, braid_submission *submission) {
  cuda_device *device = opened;
  if (getpid() != device->process) {
    snprintf(submission->error, sizeof submission->error,
             "CUDA was opened before this process was forked; load the model in it");
    return 1;
  }
  pthread_mutex_lock(&device->lock);
  const char *missing = !grow(device) ? "memory" : !start_threads(device) ? "threads" : NULL;
  if (missing == NULL) {
    device->ring[device->submitted % device->capacity] =
        (waiting){submission, submission->program, NULL};
    submission->ticket = ++device->submitted;
    pthread_cond_broadcast(&device->changed);
  }
  pthread_mutex_unlock(&device->lock);
  if (missing != NULL)
    snprintf(submission->error, sizeof submission->error, "the system gives no more %s", missing);
  return missing != NULL;
}

void braid_cuda_wait_for(void *opened, int64_t ticket) {
  cuda_device *device = opened;
  if (getpid() != device->process)
    return;
  pthread_mutex_lock(&device->lock);
  while (device->ended < ticket)
    pthread_cond_wait(&device->changed, &device->lock);
  pthread_mutex_unlock(&device->lock);
}

void braid_cuda_close_queue(cuda_device *device) {
  pthread_mutex_lock(&device->lock);
  device->closing = true;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  if (device->threads) {
    pthread_join(device->feeder, NULL);
    pthread_join(device->drainer, NULL);
  }
  free(device->ring);
}
