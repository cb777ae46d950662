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

#endif /* BRAID_DEVICE_HOST_H */
