/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The device plugin `cuda`: GPUs of NVIDIA, by the driver.
 *
 * Two threads serve a GPU. The feeder takes launches in their order, copies inputs into pinned
 * memory and starts, in three streams, their copy to the device, the function as one graph, and the
 * copy of its results to pinned memory, which events chain. The drainer waits for what was started
 * and copies results out. There are two slots of such memory a model, so that the copies of one
 * launch overlap the kernels of another. Inputs and outputs that are the GPU's memory already are
 * used where they are.
 *
 * CUDA does not survive fork: in a child, launches fail.
 */
#define _GNU_SOURCE
#include "../devices.h"
#include "program.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 2, LONG_ERROR = 512 };

typedef enum stream_kind { STREAM_IN, STREAM_COMPUTE, STREAM_OUT, STREAMS } stream_kind;

typedef enum event_kind { EVENT_IN, EVENT_BEGIN, EVENT_COMPUTED, EVENT_OUT, EVENTS } event_kind;

/* Memory and events of one launch under way. */
typedef struct slot {
  cuda_address device;
  char *pinned;
  cuda_event events[EVENTS];
  braid_submission *submission; /* NULL while it is free */
  bool started;                 /* the GPU has got all of it */
} slot;

/* A model that is loaded. */
typedef struct loaded {
  struct loaded *next;
  cuda_program *program;
  slot slots[SLOTS];
  int next_slot;
} loaded;

typedef struct waiting {
  braid_submission *submission;
  loaded *model;
  slot *slot; /* set by the feeder */
} waiting;

typedef struct cuda_device {
  cuda_gpu gpu;
  cuda_stream streams[STREAMS];
  pid_t process;
  pthread_mutex_t graphs; /* of programs and the list of them */
  loaded *models;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  waiting *ring; /* submitted, and not ended: begin at `ended` */
  int64_t capacity;
  int64_t submitted, fed, ended; /* how many so far */
  bool threads, closing;
  pthread_t feeder, drainer;
} cuda_device;

/* Why the calling thread's last `allocate` or `copy` failed. */
static _Thread_local char reason[LONG_ERROR];

static bool enter(const cuda_device *device, char *error, size_t size) {
  if (getpid() != device->process) {
    snprintf(error, size, "CUDA was opened before this process was forked; load the model in it");
    return false;
  }
  return CUDA_TRY(&device->gpu, error, size, context_push, device->gpu.context);
}

static void leave(const cuda_device *device) {
  cuda_context left = NULL;
  device->gpu.driver->context_pop(&left);
}

/* ---- Slots ---- */

static void close_slot(const cuda_gpu *gpu, slot *own) {
  for (int e = 0; e < EVENTS; ++e)
    if (own->events[e] != NULL)
      gpu->driver->event_destroy(own->events[e]);
  if (own->device != 0)
    gpu->driver->release(own->device);
  if (own->pinned != NULL)
    gpu->driver->release_host(own->pinned);
  *own = (slot){0};
}

/* Adds to a message how much there is of the GPU's memory. */
static void say_memory(const cuda_gpu *gpu, char *error, size_t size) {
  size_t available = 0, total = 0, length = strlen(error);
  if (gpu->driver->memory_info(&available, &total) == CUDA_OK && length < size)
    snprintf(error + length, size - length, "; %zu of the GPU's %zu bytes are free", available,
             total);
}

static bool open_slot(const cuda_gpu *gpu, slot *own, int64_t bytes, char *error, size_t size) {
  static const unsigned flags[EVENTS] = {CUDA_EVENT_NO_TIME, 0, 0,
                                         CUDA_EVENT_BLOCKING | CUDA_EVENT_NO_TIME};
  if (!CUDA_TRY(gpu, error, size, allocate, &own->device, (size_t)bytes)) {
    size_t length = strlen(error);
    snprintf(error + length, size - length, " for %lld bytes of inputs and outputs",
             (long long)bytes);
    say_memory(gpu, error, size);
    own->device = 0;
    return false;
  }
  void *pinned = NULL;
  if (!CUDA_TRY(gpu, error, size, allocate_host, &pinned, (size_t)bytes, 0))
    return false;
  own->pinned = pinned;
  for (int e = 0; e < EVENTS; ++e)
    if (!CUDA_TRY(gpu, error, size, event_create, &own->events[e], flags[e])) {
      own->events[e] = NULL;
      return false;
    }
  return true;
}

/* ---- Copies ---- */

/* The address of a buffer of the host that is memory of this GPU; 0 for others. */
static cuda_address on_device(const cuda_gpu *gpu, const void *buffer) {
  int kind = 0, ordinal = -1;
  cuda_address address = (cuda_address)(uintptr_t)buffer;
  if (gpu->driver->pointer_attribute(&kind, CUDA_POINTER_MEMORY, address) != CUDA_OK ||
      kind != CUDA_MEMORY_DEVICE ||
      gpu->driver->pointer_attribute(&ordinal, CUDA_POINTER_ORDINAL, address) != CUDA_OK)
    return 0;
  return ordinal == gpu->ordinal ? address : 0;
}

static const braid_function_v1 *function_of(const waiting *own) {
  const braid_device_model *model = braid_cuda_program_model(own->model->program);
  return &model->model->functions[own->submission->function];
}

/* Where port `number` of a launch lies in a slot, and how many bytes it has. */
static int64_t port_offset(const braid_function_v1 *function, int64_t number) {
  int64_t offset = 0;
  for (int64_t p = 0; p < number; ++p)
    offset += braid_cuda_aligned(function->bytes[p]);
  return offset;
}

static bool feed_inputs(cuda_device *device, const waiting *own, cuda_address *addresses,
                        char *error, size_t size) {
  const braid_function_v1 *function = function_of(own);
  for (int64_t i = 0; i < function->input_count; ++i) {
    const void *source = own->submission->inputs[i];
    int64_t offset = port_offset(function, i);
    addresses[i] = on_device(&device->gpu, source);
    if (addresses[i] != 0)
      continue;
    addresses[i] = own->slot->device + (cuda_address)offset;
    size_t bytes = (size_t)function->bytes[i];
    if (bytes == 0)
      continue;
    memcpy(own->slot->pinned + offset, source, bytes);
    if (!CUDA_TRY(&device->gpu, error, size, copy_in_async, addresses[i],
                  own->slot->pinned + offset, bytes, device->streams[STREAM_IN]))
      return false;
  }
  return true;
}

static void choose_outputs(const cuda_device *device, const waiting *own, cuda_address *addresses) {
  const braid_function_v1 *function = function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    addresses[o] = on_device(&device->gpu, own->submission->outputs[o]);
    if (addresses[o] == 0)
      addresses[o] =
          own->slot->device + (cuda_address)port_offset(function, function->input_count + o);
  }
}

static bool fetch_outputs(cuda_device *device, const waiting *own, const cuda_address *addresses,
                          char *error, size_t size) {
  const braid_function_v1 *function = function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    int64_t offset = port_offset(function, function->input_count + o);
    size_t bytes = (size_t)function->bytes[function->input_count + o];
    if (bytes == 0 || addresses[o] != own->slot->device + (cuda_address)offset)
      continue;
    if (!CUDA_TRY(&device->gpu, error, size, copy_out_async, own->slot->pinned + offset,
                  addresses[o], bytes, device->streams[STREAM_OUT]))
      return false;
  }
  return true;
}

/* Copies results from pinned memory to where the host wants them. */
static void drain_outputs(const cuda_device *device, const waiting *own) {
  const braid_function_v1 *function = function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    int64_t offset = port_offset(function, function->input_count + o);
    size_t bytes = (size_t)function->bytes[function->input_count + o];
    void *target = own->submission->outputs[o];
    if (bytes > 0 && on_device(&device->gpu, target) == 0)
      memcpy(target, own->slot->pinned + offset, bytes);
  }
}

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

static bool start(cuda_device *device, const waiting *own, cuda_address *addresses, char *error,
                  size_t size) {
  const cuda_gpu *gpu = &device->gpu;
  const braid_device_model *model = braid_cuda_program_model(own->model->program);
  cuda_address *outputs = addresses + function_of(own)->input_count;
  cuda_buffers buffers = {(cuda_address)(uintptr_t)own->submission->arena,
                          (cuda_address)(uintptr_t)model->weights, addresses, outputs};
  if (!feed_inputs(device, own, addresses, error, size))
    return false;
  choose_outputs(device, own, outputs);
  if (!chain(device, own, EVENT_IN, STREAM_IN, STREAM_COMPUTE, error, size) ||
      !chain(device, own, EVENT_BEGIN, STREAM_COMPUTE, STREAM_COMPUTE, error, size))
    return false;
  pthread_mutex_lock(&device->graphs);
  bool started = braid_cuda_program_start(gpu, own->model->program, own->submission->function,
                                          &buffers, device->streams[STREAM_COMPUTE], error, size);
  pthread_mutex_unlock(&device->graphs);
  return started && chain(device, own, EVENT_COMPUTED, STREAM_COMPUTE, STREAM_OUT, error, size) &&
         fetch_outputs(device, own, outputs, error, size) &&
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
  const braid_function_v1 *function = function_of(own);
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
  drain_outputs(device, own);
}

/* ---- Threads ---- */

static void *run_feeder(void *argument) {
  cuda_device *device = argument;
  char error[LONG_ERROR];
  bool entered = enter(device, error, sizeof error);
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
    own.slot->started = false;
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
    leave(device);
  return NULL;
}

static void *run_drainer(void *argument) {
  cuda_device *device = argument;
  char error[LONG_ERROR];
  bool entered = enter(device, error, sizeof error);
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
    leave(device);
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

/* ---- The table ---- */

static void close_streams(cuda_device *device) {
  for (int s = 0; s < STREAMS; ++s)
    if (device->streams[s] != NULL)
      device->gpu.driver->stream_destroy(device->streams[s]);
}

static void close_device(void *opened) {
  cuda_device *device = opened;
  char error[LONG_ERROR];
  if (getpid() != device->process) /* all of it is the parent's */
    return;
  pthread_mutex_lock(&device->lock);
  device->closing = true;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  if (device->threads) {
    pthread_join(device->feeder, NULL);
    pthread_join(device->drainer, NULL);
  }
  if (enter(device, error, sizeof error)) {
    close_streams(device);
    leave(device);
  }
  device->gpu.driver->context_release(device->gpu.device);
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&device->graphs);
  pthread_cond_destroy(&device->changed);
  free(device->ring);
  free(device);
}

static bool find_gpu(cuda_gpu *gpu, const char *name, char *error, size_t size) {
  int count = 0;
  const char *colon = strrchr(name, ':');
  gpu->ordinal = colon != NULL ? atoi(colon + 1) : 0;
  if (!CUDA_TRY(gpu, error, size, init, 0) || !CUDA_TRY(gpu, error, size, device_count, &count))
    return false;
  if (gpu->ordinal >= count) {
    snprintf(error, size, "there are %d GPUs here", count);
    return false;
  }
  return CUDA_TRY(gpu, error, size, device_get, &gpu->device, gpu->ordinal) &&
         CUDA_TRY(gpu, error, size, device_attribute, &gpu->major, CUDA_MAJOR, gpu->device) &&
         CUDA_TRY(gpu, error, size, device_attribute, &gpu->minor, CUDA_MINOR, gpu->device);
}

static bool open_streams(cuda_device *device, char *error, size_t size) {
  if (!enter(device, error, size))
    return false;
  bool made = true;
  for (int s = 0; made && s < STREAMS; ++s) {
    made = CUDA_TRY(&device->gpu, error, size, stream_create, &device->streams[s],
                    CUDA_STREAM_NON_BLOCKING);
    if (!made)
      device->streams[s] = NULL;
  }
  if (!made)
    close_streams(device);
  leave(device);
  return made;
}

static void *open_device(const char *name, char error[BRAID_DEVICE_ERROR]) {
  const cuda_driver *driver = braid_cuda_load_driver(error, BRAID_DEVICE_ERROR);
  if (driver == NULL)
    return NULL;
  cuda_device *device = calloc(1, sizeof *device);
  if (device == NULL) {
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    return NULL;
  }
  device->gpu.driver = driver;
  device->process = getpid();
  if (!find_gpu(&device->gpu, name, error, BRAID_DEVICE_ERROR) ||
      !CUDA_TRY(&device->gpu, error, BRAID_DEVICE_ERROR, context_retain, &device->gpu.context,
                device->gpu.device)) {
    free(device);
    return NULL;
  }
  if (!open_streams(device, error, BRAID_DEVICE_ERROR)) {
    driver->context_release(device->gpu.device);
    free(device);
    return NULL;
  }
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->graphs, NULL);
  pthread_cond_init(&device->changed, NULL);
  return device;
}

static void unload_model(cuda_device *device, loaded *model) {
  for (int s = 0; s < SLOTS; ++s)
    close_slot(&device->gpu, &model->slots[s]);
  if (model->program != NULL)
    braid_cuda_program_unload(&device->gpu, model->program);
  free(model);
}

static void *load(void *opened, const braid_device_model *described,
                  char error[BRAID_DEVICE_ERROR]) {
  cuda_device *device = opened;
  char text[LONG_ERROR] = "out of memory";
  loaded *model = enter(device, text, sizeof text) ? calloc(1, sizeof *model) : NULL;
  bool right = false;
  if (model != NULL) {
    model->program = braid_cuda_program_load(&device->gpu, described, text, sizeof text);
    right = model->program != NULL;
    for (int s = 0; right && s < SLOTS; ++s)
      right = open_slot(&device->gpu, &model->slots[s],
                        braid_cuda_program_port_bytes(model->program), text, sizeof text);
    if (!right)
      unload_model(device, model);
    leave(device);
  }
  if (!right) {
    snprintf(error, BRAID_DEVICE_ERROR, "%.*s", BRAID_DEVICE_ERROR - 1, text);
    return NULL;
  }
  pthread_mutex_lock(&device->graphs);
  model->next = device->models;
  device->models = model;
  pthread_mutex_unlock(&device->graphs);
  return model;
}

static void unload(void *opened, void *program) {
  cuda_device *device = opened;
  char error[LONG_ERROR];
  pthread_mutex_lock(&device->graphs);
  loaded **at = &device->models;
  while (*at != program)
    at = &(*at)->next;
  *at = (*at)->next;
  pthread_mutex_unlock(&device->graphs);
  if (enter(device, error, sizeof error)) {
    unload_model(device, program);
    leave(device);
  }
}

static void *allocate(void *opened, int64_t bytes) {
  cuda_device *device = opened;
  cuda_address memory = 0;
  if (!enter(device, reason, sizeof reason))
    return NULL;
  if (!CUDA_TRY(&device->gpu, reason, sizeof reason, allocate, &memory, (size_t)bytes)) {
    say_memory(&device->gpu, reason, sizeof reason);
    memory = 0;
  }
  leave(device);
  return (void *)(uintptr_t)memory;
}

static void release(void *opened, void *memory) {
  cuda_device *device = opened;
  char error[LONG_ERROR];
  cuda_address address = (cuda_address)(uintptr_t)memory;
  if (!enter(device, error, sizeof error))
    return;
  pthread_mutex_lock(&device->graphs);
  for (loaded *model = device->models; model != NULL; model = model->next)
    braid_cuda_program_forget(&device->gpu, model->program, address);
  pthread_mutex_unlock(&device->graphs);
  device->gpu.driver->release(address);
  leave(device);
}

static int copy(void *opened, void *to, const void *from, int64_t bytes) {
  cuda_device *device = opened;
  if (!enter(device, reason, sizeof reason))
    return 1;
  bool copied = CUDA_TRY(&device->gpu, reason, sizeof reason, copy_in, (cuda_address)(uintptr_t)to,
                         from, (size_t)bytes);
  leave(device);
  return !copied;
}

static const char *why(void *opened) {
  (void)opened;
  return reason;
}

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

static int submit(void *opened, braid_submission *submission) {
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

static void wait_for(void *opened, int64_t ticket) {
  cuda_device *device = opened;
  if (getpid() != device->process)
    return;
  pthread_mutex_lock(&device->lock);
  while (device->ended < ticket)
    pthread_cond_wait(&device->changed, &device->lock);
  pthread_mutex_unlock(&device->lock);
}

const braid_device_plugin braid_plugin_cuda = {.abi_version = BRAID_DEVICE_ABI_VERSION,
                                               .name = "cuda",
                                               .open = open_device,
                                               .close = close_device,
                                               .load = load,
                                               .unload = unload,
                                               .allocate = allocate,
                                               .release = release,
                                               .copy = copy,
                                               .submit = submit,
                                               .wait = wait_for,
                                               .why = why};
