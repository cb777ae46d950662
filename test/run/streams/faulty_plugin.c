/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A device plugin that is late and fails at random, as FAULTY_FAILS and FAULTY_DELAYS say (of 1,000
 * launches each), and hangs for two seconds at launch FAULTY_HANGS_AT from when that was set. It
 * computes on the thread that submits. */
#define _GNU_SOURCE
#include <braid/device.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct device {
  int64_t launches;
  int64_t hangs_at, hung_after; /* the setting, and the launches before it was made */
  uint64_t state;
} device;

static void *open_device(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)error;
  device *made = calloc(1, sizeof *made);
  made->state = 88172645463325252u + (uint64_t)name[strlen(name) - 1] - '1';
  return made;
}

static void close_device(void *opened) { free(opened); }

static void *load(void *opened, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  (void)opened, (void)error;
  return (void *)(uintptr_t)model;
}

static int64_t setting(const char *name) {
  const char *text = getenv(name);
  return text != NULL ? atoll(text) : 0;
}

/* A fraction in thousandths: xorshift, of G. Marsaglia. */
static int64_t draw(device *own) {
  own->state ^= own->state << 13;
  own->state ^= own->state >> 7;
  own->state ^= own->state << 17;
  return (int64_t)(own->state % 1000);
}

static void pause_for(int64_t nanoseconds) {
  struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  nanosleep(&time, NULL);
}

static int submit(void *opened, braid_submission *submission) {
  device *own = opened;
  for (int64_t i = 0; i < submission->after_count; ++i) {
    const braid_submission *before = submission->after[i];
    before->plugin->wait(before->device, before->ticket);
  }
  int64_t number = ++own->launches;
  submission->ticket = number;
  if (draw(own) < setting("FAULTY_DELAYS"))
    pause_for(1000 * (1 + draw(own)));
  int64_t hangs_at = setting("FAULTY_HANGS_AT");
  if (hangs_at != own->hangs_at) {
    own->hangs_at = hangs_at;
    own->hung_after = number - 1;
  }
  if (hangs_at > 0 && number - own->hung_after == hangs_at)
    pause_for(2000000000);
  int64_t fate = draw(own);
  if (2 * fate < setting("FAULTY_FAILS")) {
    strcpy(submission->error, "refused by chance");
    return 1;
  }
  if (fate < setting("FAULTY_FAILS")) {
    submission->status = 3;
    strcpy(submission->error, "broken by chance");
    return 0;
  }
  submission->compute(submission);
  return 0;
}

static void wait_for(void *opened, int64_t ticket) { (void)opened, (void)ticket; }

const braid_device_plugin braid_device_table = {.abi_version = BRAID_DEVICE_ABI_VERSION,
                                                .name = "faulty",
                                                .shares_memory = 1,
                                                .open = open_device,
                                                .close = close_device,
                                                .load = load,
                                                .submit = submit,
                                                .wait = wait_for};
