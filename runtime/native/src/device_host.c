/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Devices that compute on the host: `cpu`; `core`, which keeps to a core; `npu-sim`, which plays
 * the streams of a chip in simulated time (device_npu.c); `gpu-emulated`, whose functions have the
 * kernels of a GPU; `rtl`, which simulates circuits and counts their cycles (device_rtl.c); and a
 * stand-in for a missing device, which is no faster than that device would be.
 *
 * Each has a separate thread, which it creates with its first launch. Launches wait in a list;
 * how many were submitted and how many have ended are counters that threads wait for as inter-op
 * streams do. As in the pool, a forked child has no thread and makes its own.
 */
#define _GNU_SOURCE
#include "device_host.h"
#include "devices.h"
#include "waiting.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTER_WORDS = 8, ANYWHERE = -1 };

typedef enum account {
  MEASURED, /* how long it took here */
  EMULATED, /* its time there, and a launch does not end earlier */
  COUNTED   /* as reported by the function that computes it */
} account;

typedef struct host_device {
  _Alignas(64) int64_t submitted[COUNTER_WORDS]; /* see braid_post */
  _Alignas(64) int64_t ended[COUNTER_WORDS];
  pthread_mutex_t lock;    /* of all below */
  braid_submission **list; /* a ring of launches that have not begun */
  int64_t first, count, capacity;
  bool started;
  account account;
  braid_host_compute *compute; /* instead of the host's code; NULL for that */
  int core;                    /* the number of the CPU that launches run on, or ANYWHERE */
  pthread_t thread;
  pthread_mutex_t busy; /* held by who computes: the thread, or that of a stream */
  struct host_device *next;
} host_device;

/* Held to change the list of devices, and while the process forks. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static host_device *devices;
static bool handles_forks;

/* ---- The thread ---- */

const braid_submission *braid_failed_before(const braid_submission *submission) {
  const braid_submission *failed = NULL;
  for (int64_t i = 0; i < submission->after_count; ++i) {
    const braid_submission *before = submission->after[i];
    before->plugin->wait(before->device, before->ticket);
    if (failed == NULL && before->status != 0)
      failed = before;
  }
  return failed;
}

/* How long the device takes for the function, as was known when it was compiled; 0 for unknown. */
static uint64_t expected(const braid_submission *submission) {
  const braid_device_model *model = submission->program;
  return (uint64_t)model->model->functions[submission->function].nanoseconds;
}

static void sleep_until(uint64_t end) {
  struct timespec time = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
    ;
}

/* Lets the calling thread run on the device's core alone, for good. If the system refuses, it runs
 * on any CPU. */
static void keep_to_core(const host_device *device) {
  static _Thread_local int kept = ANYWHERE;
  if (device->core == kept)
    return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(device->core, &set);
  sched_setaffinity(0, sizeof set, &set);
  kept = device->core;
}

void braid_host_run(void *opened, braid_submission *submission) {
  host_device *device = opened;
  const braid_submission *failed = braid_failed_before(submission);
  keep_to_core(device);
  pthread_mutex_lock(&device->busy);
  uint64_t begin = braid_now();
  uint64_t there = device->account == EMULATED ? expected(submission) : 0;
  if (failed == NULL) {
    (device->compute != NULL ? device->compute : submission->compute)(submission);
  } else {
    submission->status = failed->status;
    snprintf(submission->error, sizeof submission->error, "%s", failed->error);
  }
  if (device->account == EMULATED && failed == NULL)
    sleep_until(begin + there);
  bool measured = device->account == MEASURED || (device->account == EMULATED && there == 0);
  uint64_t took = measured ? braid_now() - begin : there;
  if (failed != NULL)
    submission->nanoseconds = 0;
  else if (device->account != COUNTED)
    submission->nanoseconds = (int64_t)took;
  pthread_mutex_unlock(&device->busy);
}

/* The next one; NULL when the device closes. */
static braid_submission *take(host_device *device) {
  braid_submission *taken = NULL;
  pthread_mutex_lock(&device->lock);
  if (device->count > 0) {
    taken = device->list[device->first];
    device->first = (device->first + 1) % device->capacity;
    --device->count;
  }
  pthread_mutex_unlock(&device->lock);
  return taken;
}

static void *serve(void *argument) {
  host_device *device = argument;
  for (int64_t number = device->ended[0] + 1;; ++number) {
    braid_wait(device->submitted, number);
    braid_submission *submission = take(device);
    if (submission == NULL)
      return NULL;
    braid_host_run(device, submission);
    braid_post(device->ended, number);
  }
}

/* With the lock. */
static bool start_thread(host_device *device) {
  sigset_t all, before;
  sigfillset(&all); /* handlers of the program run in threads of the program */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  device->started = pthread_create(&device->thread, NULL, serve, device) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (device->started)
    pthread_setname_np(device->thread, "braid-device");
  return device->started;
}

/* ---- fork ---- */

static void before_fork(void) {
  pthread_mutex_lock(&devices_lock);
  for (host_device *at = devices; at != NULL; at = at->next)
    pthread_mutex_lock(&at->lock);
}

static void after_fork_in_parent(void) {
  for (host_device *at = devices; at != NULL; at = at->next)
    pthread_mutex_unlock(&at->lock);
  pthread_mutex_unlock(&devices_lock);
}

static void after_fork_in_child(void) {
  for (host_device *at = devices; at != NULL; at = at->next) {
    at->started = false;
    at->first = at->count = 0;
    at->submitted[1] = at->ended[1] = 0; /* nobody sleeps here */
    at->submitted[0] = at->ended[0];
    pthread_mutex_init(&at->busy, NULL); /* whose thread is not here */
    pthread_mutex_unlock(&at->lock);
  }
  pthread_mutex_unlock(&devices_lock);
}

/* ---- The table ---- */

/* The CPU of this process with the number that the device's name ends in; all come round again
 * where there are fewer. */
static int core_of(const char *name) {
  cpu_set_t set;
  const char *colon = strrchr(name, ':');
  long left = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
  if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) == 0)
    return ANYWHERE;
  left %= CPU_COUNT(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set) && left-- == 0)
      return cpu;
  return ANYWHERE;
}

static void *open_device(account account, int core, char error[BRAID_DEVICE_ERROR]) {
  void *memory = NULL;
  if (posix_memalign(&memory, _Alignof(host_device), sizeof(host_device)) != 0) {
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    return NULL;
  }
  host_device *device = memory;
  *device = (host_device){.account = account, .core = core};
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->busy, NULL);
  pthread_mutex_lock(&devices_lock);
  if (!handles_forks)
    handles_forks = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  bool opened = handles_forks;
  if (opened) {
    device->next = devices;
    devices = device;
  }
  pthread_mutex_unlock(&devices_lock);
  if (!opened) {
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    free(device);
    return NULL;
  }
  return device;
}

void *braid_host_open(braid_host_compute *compute, char error[BRAID_DEVICE_ERROR]) {
  host_device *device = open_device(COUNTED, ANYWHERE, error);
  if (device != NULL)
    device->compute = compute;
  return device;
}

static void *open_cpu(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)name;
  return open_device(MEASURED, ANYWHERE, error);
}

static void *open_core(const char *name, char error[BRAID_DEVICE_ERROR]) {
  return open_device(MEASURED, core_of(name), error);
}

static void *open_emulated(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)name;
  return open_device(EMULATED, ANYWHERE, error);
}

void braid_host_close(void *opened) {
  host_device *device = opened;
  pthread_mutex_lock(&devices_lock);
  host_device **at = &devices;
  while (*at != device)
    at = &(*at)->next;
  *at = device->next;
  pthread_mutex_unlock(&devices_lock);
  if (device->started) {
    braid_post(device->submitted, device->submitted[0] + 1);
    pthread_join(device->thread, NULL);
  }
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&device->busy);
  free(device->list);
  free(device);
}

static void *load(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  (void)device;
  const braid_model_v2 *descriptor = model->model;
  for (int64_t i = 0; i < descriptor->function_count; ++i) {
    const braid_function_v1 *function = &descriptor->functions[i];
    if (function->device == model->device && function->run == NULL) {
      snprintf(error, BRAID_DEVICE_ERROR, "there is no code of '@%.160s' for the host",
               function->name);
      return NULL;
    }
  }
  return (void *)(uintptr_t)model;
}

/* With the lock: room for one more. */
static bool grow(host_device *device) {
  if (device->count < device->capacity)
    return true;
  int64_t capacity = 2 * device->capacity + 16;
  braid_submission **list = malloc((size_t)capacity * sizeof(braid_submission *));
  if (list == NULL)
    return false;
  for (int64_t i = 0; i < device->count; ++i)
    list[i] = device->list[(device->first + i) % device->capacity];
  free(device->list);
  device->list = list;
  device->first = 0;
  device->capacity = capacity;
  return true;
}

int braid_host_submit(void *opened, braid_submission *submission) {
  host_device *device = opened;
  pthread_mutex_lock(&device->lock);
  const char *missing = !grow(device)                               ? "memory"
                        : !device->started && !start_thread(device) ? "thread"
                                                                    : NULL;
  if (missing == NULL) {
    device->list[(device->first + device->count++) % device->capacity] = submission;
    submission->ticket = device->submitted[0] + 1;
    braid_post(device->submitted, submission->ticket);
  }
  pthread_mutex_unlock(&device->lock);
  if (missing != NULL)
    snprintf(submission->error, sizeof submission->error, "the system gives no more %s", missing);
  return missing != NULL;
}

void braid_host_wait(void *opened, int64_t ticket) {
  host_device *device = opened;
  braid_wait(device->ended, ticket);
}

const braid_device_plugin braid_plugin_cpu = BRAID_HOST_PLUGIN("cpu", open_cpu, load, NULL, 0);
const braid_device_plugin braid_plugin_core = BRAID_HOST_PLUGIN("core", open_core, load, NULL, 1);
/* The code of its functions contains the kernels of a GPU, and their emulator. */
const braid_device_plugin braid_plugin_gpu_emulated =
    BRAID_HOST_PLUGIN("gpu-emulated", open_cpu, load, NULL, 0);
const braid_device_plugin braid_plugin_emulated =
    BRAID_HOST_PLUGIN("emulated", open_emulated, load, NULL, 0);
