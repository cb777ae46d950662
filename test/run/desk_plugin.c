/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A device plugin of another package: a device with separate memory for weights and arenas, which
 * computes on the launching thread. `desk:9` is missing. */
#include <braid/device.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *open_device(const char *name, char error[BRAID_DEVICE_ERROR]) {
  if (getenv("DESK_IS_SLOW") != NULL)
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
  if (strcmp(name, "desk:9") == 0) {
    strcpy(error, "nobody sits there");
    return NULL;
  }
  return calloc(1, sizeof(int64_t));
}

static void close_device(void *device) { free(device); }

static void *load(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  (void)device, (void)error;
  return (void *)model;
}

static void *allocate(void *device, int64_t bytes) {
  (void)device;
  return aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
}

static void release(void *device, void *memory) {
  (void)device;
  free(memory);
}

static int copy(void *device, void *to, const void *from, int64_t bytes) {
  (void)device;
  memcpy(to, from, (size_t)bytes);
  return 0;
}

static int submit(void *device, braid_submission *submission) {
  for (int64_t i = 0; i < submission->after_count; ++i) {
    const braid_submission *before = submission->after[i];
    before->plugin->wait(before->device, before->ticket);
  }
  if (getenv("DESK_FAILS") != NULL) {
    submission->status = 7;
    strcpy(submission->error, "the desk broke");
  } else {
    submission->compute(submission);
  }
  submission->nanoseconds = 1000;
  submission->ticket = __atomic_add_fetch((int64_t *)device, 1, __ATOMIC_SEQ_CST);
  return 0;
}

static void wait_for(void *device, int64_t ticket) { (void)device, (void)ticket; }

const braid_device_plugin braid_device_table = {.abi_version = BRAID_DEVICE_ABI_VERSION,
                                                .name = "desk",
                                                .open = open_device,
                                                .close = close_device,
                                                .load = load,
                                                .allocate = allocate,
                                                .release = release,
                                                .copy = copy,
                                                .submit = submit,
                                                .wait = wait_for};
