/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A thread of the host that runs the launches of a device one after the other.
 */
#ifndef BRAID_DEVICE_HOST_H
#define BRAID_DEVICE_HOST_H

#include "braid/device.h"

/* Computes a launch, and sets its `status`, `error` and `nanoseconds`. */
typedef void braid_host_compute(braid_submission *submission);

/* For the table of a plugin whose launches `compute` runs; NULL and the reason in `error` where
 * there is no memory. */
void *braid_host_open(braid_host_compute *compute, char error[BRAID_DEVICE_ERROR]);
void braid_host_close(void *device);
int braid_host_submit(void *device, braid_submission *submission);
void braid_host_wait(void *device, int64_t ticket);
void braid_host_run(void *device, braid_submission *submission);

/* Waits for the launches that must precede one; returns the first of them that failed, or NULL. */
const braid_submission *braid_failed_before(const braid_submission *submission);

/* The table of a plugin whose launches such a thread runs, on `THREADS` threads of the host at most
 * (0 for as many as the model has). It shares the host's memory, so that there is nothing to
 * allocate or to copy. */
#define BRAID_HOST_PLUGIN(NAME, OPEN, LOAD, UNLOAD, THREADS)                                       \
  {.abi_version = BRAID_DEVICE_ABI_VERSION,                                                        \
   .name = (NAME),                                                                                 \
   .shares_memory = 1,                                                                             \
   .open = (OPEN),                                                                                 \
   .close = braid_host_close,                                                                      \
   .load = (LOAD),                                                                                 \
   .unload = (UNLOAD),                                                                             \
   .submit = braid_host_submit,                                                                    \
   .wait = braid_host_wait,                                                                        \
   .run = braid_host_run,                                                                          \
   .threads = (THREADS)}

#endif /* BRAID_DEVICE_HOST_H */
