/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches in the order in which they were submitted: fed, which starts them on the GPU, and
 * drained, which waits for their ends. The feeder and the drainer are threads that do so for
 * callers that go on with something else. Who submits a launch that has nothing to wait for feeds
 * it, and who waits drains, where nobody does so already: waking threads takes longer than many a
 * launch.
 */
#define _GNU_SOURCE
#include "../device_host.h"
#include "../devices.h"
#include "../waiting.h"
#include "device.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Bytes of the host's inputs that a caller copies into pinned memory before it continues. */
enum { LITTLE = 1 << 16 };

/* How long a thread asks for the end of a launch before it sleeps until then. */
static const int64_t ASKING_NANOSECONDS = 2000000;

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

/* Foreign memory is used after all work in the legacy default stream has ended, as DLPack requires.
 * When a launch has ended, so has its use of that memory. */
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
      (own->slot->copied_in &&
       !chain(device, own, EVENT_IN, STREAM_IN, STREAM_COMPUTE, error, size)) ||
      !chain(device, own, EVENT_BEGIN, STREAM_COMPUTE, STREAM_COMPUTE, error, size))
    return false;
  pthread_mutex_lock(&device->graphs);
  bool started = braid_cuda_program_start(gpu, own->model->program, own->submission->function,
                                          &buffers, device->streams[STREAM_COMPUTE], error, size);
  pthread_mutex_unlock(&device->graphs);
  stream_kind last = own->slot->copied_out ? STREAM_OUT : STREAM_COMPUTE;
  return started && chain(device, own, EVENT_COMPUTED, STREAM_COMPUTE, last, error, size) &&
         braid_cuda_fetch_outputs(device, own, outputs, error, size) &&
         chain(device, own, EVENT_OUT, last, last, error, size);
}

static void fail_submission(braid_submission *submission, int32_t status, const char *error) {
  submission->status = status;
  snprintf(submission->error, sizeof submission->error, "%.*s", BRAID_DEVICE_ERROR - 1, error);
}

/* Hands a launch to the GPU; `started` says whether all of them started. */
static void feed(cuda_device *device, waiting *own) {
  char error[LONG_ERROR] = "out of memory";
  const braid_submission *failed = braid_failed_before(own->submission);
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

static bool await_event(const cuda_gpu *gpu, cuda_event event, char *error, size_t size) {
  uint64_t until = braid_now() + ASKING_NANOSECONDS;
  cuda_result result = gpu->driver->event_query(event);
  while (result == CUDA_NOT_READY && braid_now() < until) {
    sched_yield();
    result = gpu->driver->event_query(event);
  }
  if (result == CUDA_NOT_READY)
    return CUDA_TRY(gpu, error, size, event_synchronize, event);
  if (result != CUDA_OK)
    braid_cuda_describe(gpu->driver, "cuEventQuery", result, error, size);
  return result == CUDA_OK;
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
  if (!await_event(gpu, events[EVENT_OUT], error, sizeof error) ||
      !CUDA_TRY(gpu, error, sizeof error, event_elapsed, &milliseconds, events[EVENT_BEGIN],
                events[EVENT_COMPUTED])) {
    fail_submission(own->submission, -1, error);
    return;
  }
  own->submission->nanoseconds = (int64_t)((double)milliseconds * 1e6);
  braid_cuda_drain_outputs(device, own);
}

/* ---- In their order ---- */

/* Whether a thread has the GPU's context, and if not, the reason. */
typedef struct worker {
  bool entered;
  char error[LONG_ERROR];
} worker;

static void enter(cuda_device *device, worker *own) {
  own->entered = braid_cuda_enter(device, own->error, sizeof own->error);
}

static void leave(cuda_device *device, const worker *own) {
  if (own->entered)
    braid_cuda_leave(device);
}

/* Called with the lock, which it releases meanwhile. Feeds or drains a launch, or returns why it
 * could not. */
static void without_lock(cuda_device *device, const worker *own,
                         void (*step)(cuda_device *, waiting *), waiting *launch) {
  pthread_mutex_unlock(&device->lock);
  if (own->entered)
    step(device, launch);
  else
    fail_submission(launch->submission, -1, own->error);
  pthread_mutex_lock(&device->lock);
}

/* The slot that the next launch is to have. */
static slot *next_slot(cuda_device *device) {
  const waiting *next = &device->ring[device->fed % device->capacity];
  return &next->model->slots[next->model->next_slot];
}

/* Called with the lock, which it releases meanwhile. Feeds the next launch if no thread feeds it
 * yet and its slot is free. */
static bool feed_next(cuda_device *device, const worker *own) {
  if (device->feeding || device->fed == device->submitted || next_slot(device)->submission != NULL)
    return false;
  waiting *next = &device->ring[device->fed % device->capacity];
  next->slot = next_slot(device);
  next->model->next_slot = (next->model->next_slot + 1) % SLOTS;
  next->slot->submission = next->submission;
  next->slot->started = next->slot->given = false;
  next->slot->copied_in = next->slot->copied_out = false;
  waiting fed = *next;
  device->feeding = true;
  without_lock(device, own, feed, &fed);
  device->feeding = false;
  ++device->fed;
  pthread_cond_broadcast(&device->changed);
  return true;
}

/* Called with the lock, which it releases meanwhile. Drains the next launch that is fed and that no
 * thread drains yet. */
static bool drain_next(cuda_device *device, const worker *own) {
  if (device->draining || device->ended == device->fed)
    return false;
  waiting drained = device->ring[device->ended % device->capacity];
  device->draining = true;
  without_lock(device, own, drain, &drained);
  device->draining = false;
  drained.slot->submission = NULL;
  ++device->ended;
  pthread_cond_broadcast(&device->changed);
  return true;
}

/* ---- Threads ---- */

/* Calls `next` until the device closes and it is through with all that was submitted. */
static void *run_thread(cuda_device *device, const int64_t *through,
                        bool (*next)(cuda_device *, const worker *)) {
  worker own;
  enter(device, &own);
  pthread_mutex_lock(&device->lock);
  while (!(device->closing && *through == device->submitted))
    if (!next(device, &own))
      pthread_cond_wait(&device->changed, &device->lock);
  pthread_mutex_unlock(&device->lock);
  leave(device, &own);
  return NULL;
}

static void *run_feeder(void *argument) {
  cuda_device *device = argument;
  return run_thread(device, &device->fed, feed_next);
}

static void *run_drainer(void *argument) {
  cuda_device *device = argument;
  return run_thread(device, &device->ended, drain_next);
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

/* Called with the lock: capacity for one more unfinished launch. */
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

/* Called with the lock: feeds the launch that was just submitted, if that takes no longer than to
 * wake the feeder. */
static void feed_or_wake(cuda_device *device) {
  worker own;
  const waiting *last = &device->ring[(device->submitted - 1) % device->capacity];
  bool next = device->fed + 1 == device->submitted && last->submission->after_count == 0;
  if (!next || device->feeding || next_slot(device)->submission != NULL) {
    pthread_cond_broadcast(&device->changed);
    return;
  }
  enter(device, &own);
  if (!own.entered || !braid_cuda_copies_little(device, last, LITTLE) || !feed_next(device, &own))
    pthread_cond_broadcast(&device->changed);
  leave(device, &own);
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
    feed_or_wake(device);
  }
  pthread_mutex_unlock(&device->lock);
  if (missing != NULL)
    snprintf(submission->error, sizeof submission->error, "the system gives no more %s", missing);
  return missing != NULL;
}

void braid_cuda_wait_for(void *opened, int64_t ticket) {
  cuda_device *device = opened;
  worker own;
  if (getpid() != device->process)
    return;
  enter(device, &own);
  pthread_mutex_lock(&device->lock);
  while (device->ended < ticket)
    if (!own.entered || !drain_next(device, &own))
      pthread_cond_wait(&device->changed, &device->lock);
  pthread_mutex_unlock(&device->lock);
  leave(device, &own);
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
