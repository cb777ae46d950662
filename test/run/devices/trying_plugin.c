/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A device plugin called NAME that computes on the launching thread, after ON_SUBMIT: nothing, or
 * crash, or hang. It prints, as plugins do, and says that launches take a second.
 */
#define _GNU_SOURCE
#include <braid/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *open_device(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)name, (void)error;
  printf("opened\n");
  fflush(stdout);
  return calloc(1, sizeof(int64_t));
}

static void close_device(void *device) { free(device); }

static void *load(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  (void)device, (void)error;
  return (void *)(uintptr_t)model;
}

static int submit(void *device, braid_submission *submission) {
  for (int64_t i = 0; i < submission->after_count; ++i) {
    const braid_submission *before = submission->after[i];
    before->plugin->wait(before->device, before->ticket);
  }
  ON_SUBMIT;
  submission->compute(submission);
  submission->nanoseconds = 1000000000;
  submission->ticket = ++*(int64_t *)device;
  return 0;
}

static void wait_for(void *device, int64_t ticket) { (void)device, (void)ticket; }

const braid_device_plugin braid_device_table = {.abi_version = BRAID_DEVICE_ABI_VERSION,
                                                .name = NAME,
                                                .shares_memory = 1,
                                                .open = open_device,
                                                .close = close_device,
                                                .load = load,
                                                .submit = submit,
                                                .wait = wait_for};
