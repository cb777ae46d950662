/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The device plugin `cuda`: GPUs of NVIDIA, by the driver.
 *
 * Two threads serve a GPU. The feeder takes launches in their order and copies inputs into pinned
 * memory. It starts the copy to the device, the function (as one graph), and the copy of its
 * results to pinned memory, in three streams that events chain. The drainer waits for what was
 * started and copies results out. Each model has two slots of pinned memory, so that copies of one
 * launch overlap with kernels of another. Inputs and outputs that are in the GPU's memory already
 * are used where they are.
 *
 * CUDA does not survive fork: in a child, launches fail.
 */
#define _GNU_SOURCE
#include "device.h"
#include "../devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Why the calling thread's last `allocate` or `copy` failed. */
static _Thread_local char reason[LONG_ERROR];

bool braid_cuda_enter(const cuda_device *device, char *error, size_t size) {
  if (getpid() != device->process) {
    snprintf(error, size, "CUDA was opened before this process was forked; load the model in it");
    return false;
  }
  return CUDA_TRY(&device->gpu, error, size, context_push, device->gpu.context);
}

void braid_cuda_leave(const cuda_device *device) {
  cuda_context left = NULL;
  device->gpu.driver->context_pop(&left);
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
  braid_cuda_close_queue(device);
  if (braid_cuda_enter(device, error, sizeof error)) {
    close_streams(device);
    braid_cuda_leave(device);
  }
  device->gpu.driver->context_release(device->gpu.device);
  pthread_mutex_destroy(&device->lock);
  pthread_mutex_destroy(&device->graphs);
  pthread_cond_destroy(&device->changed);
  free(device);
}

static bool find_gpu(cuda_gpu *gpu, const char *name, char *error, size_t size) {
  int count = 0;
  const char *colon = strrchr(name, ':');
  long ordinal = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
  if (!CUDA_TRY(gpu, error, size, init, 0) || !CUDA_TRY(gpu, error, size, device_count, &count))
    return false;
  if (ordinal < 0 || ordinal >= count) {
    snprintf(error, size, "there are %d GPUs here", count);
    return false;
  }
  gpu->ordinal = (int)ordinal;
  return CUDA_TRY(gpu, error, size, device_get, &gpu->device, gpu->ordinal) &&
         CUDA_TRY(gpu, error, size, device_attribute, &gpu->major, CUDA_MAJOR, gpu->device) &&
         CUDA_TRY(gpu, error, size, device_attribute, &gpu->minor, CUDA_MINOR, gpu->device);
}

static bool open_streams(cuda_device *device, char *error, size_t size) {
  if (!braid_cuda_enter(device, error, size))
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
  braid_cuda_leave(device);
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
    braid_cuda_close_slot(&device->gpu, &model->slots[s]);
  if (model->program != NULL)
    braid_cuda_program_unload(&device->gpu, model->program);
  free(model);
}

static void *load(void *opened, const braid_device_model *described,
                  char error[BRAID_DEVICE_ERROR]) {
  cuda_device *device = opened;
  char text[LONG_ERROR] = "out of memory";
  loaded *model = braid_cuda_enter(device, text, sizeof text) ? calloc(1, sizeof *model) : NULL;
  bool right = false;
  if (model != NULL) {
    model->program = braid_cuda_program_load(&device->gpu, described, text, sizeof text);
    right = model->program != NULL;
    for (int s = 0; right && s < SLOTS; ++s)
      right =
          braid_cuda_open_slot(&device->gpu, &model->slots[s],
                               braid_cuda_program_port_bytes(model->program), text, sizeof text);
    if (!right)
      unload_model(device, model);
    braid_cuda_leave(device);
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
  if (braid_cuda_enter(device, error, sizeof error)) {
    unload_model(device, program);
    braid_cuda_leave(device);
  }
}

static void *allocate(void *opened, int64_t bytes) {
  cuda_device *device = opened;
  cuda_address memory = 0;
  if (!braid_cuda_enter(device, reason, sizeof reason))
    return NULL;
  if (!CUDA_TRY(&device->gpu, reason, sizeof reason, allocate, &memory, (size_t)bytes)) {
    braid_cuda_say_memory(&device->gpu, reason, sizeof reason);
    memory = 0;
  }
  braid_cuda_leave(device);
  return (void *)(uintptr_t)memory;
}

static void release(void *opened, void *memory) {
  cuda_device *device = opened;
  char error[LONG_ERROR];
  cuda_address address = (cuda_address)(uintptr_t)memory;
  if (!braid_cuda_enter(device, error, sizeof error))
    return;
  pthread_mutex_lock(&device->graphs);
  for (loaded *model = device->models; model != NULL; model = model->next)
    braid_cuda_program_forget(&device->gpu, model->program, address);
  pthread_mutex_unlock(&device->graphs);
  device->gpu.driver->release(address);
  braid_cuda_leave(device);
}

static int copy(void *opened, void *to, const void *from, int64_t bytes) {
  cuda_device *device = opened;
  if (!braid_cuda_enter(device, reason, sizeof reason))
    return 1;
  bool copied = CUDA_TRY(&device->gpu, reason, sizeof reason, copy_in, (cuda_address)(uintptr_t)to,
                         from, (size_t)bytes);
  braid_cuda_leave(device);
  return !copied;
}

static const char *why(void *opened) {
  (void)opened;
  return reason;
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
                                               .submit = braid_cuda_submit,
                                               .wait = braid_cuda_wait_for,
                                               .why = why};
