/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Devices that are open in this process, and the code that models have loaded onto them.
 */
#ifndef BRAID_DEVICES_H
#define BRAID_DEVICES_H

#include "braid/device.h"
#include "internal.h"

typedef struct braid_open_device braid_open_device;

/* A device of a model. */
typedef struct braid_loaded_device {
  braid_open_device *open; /* NULL while it is not */
  const braid_device_plugin *plugin;
  void *device;
  braid_device_model described; /* `weights` is where its functions find them */
  void *own_weights;            /* on the device; NULL where it reads the host's */
  void *program;
} braid_loaded_device;

/* Plugins of the runtime: a thread of the host, one that keeps to a core, one in simulated time,
 * one that emulates a GPU, one that simulates circuits, one for a device that is missing, delayed
 * to what that would take, and one for GPUs of NVIDIA. */
extern const braid_device_plugin braid_plugin_cpu, braid_plugin_core, braid_plugin_npu_sim,
    braid_plugin_gpu_emulated, braid_plugin_rtl, braid_plugin_emulated, braid_plugin_cuda;

/* Memory of a device; of the host, where the plugin leaves that to the runtime. NULL where there is
 * no more. */
void *braid_device_allocate(const braid_loaded_device *device, int64_t bytes);
void braid_device_release(const braid_loaded_device *device, void *memory);

/* Sets the error: which memory cannot be allocated or copied, and the plugin's reason. */
void braid_device_no_room(const braid_loaded_device *device, const char *what, int64_t bytes);

/* Opens the devices of a model and loads its functions; false and the error set, and nothing left
 * open, where one is missing. */
bool braid_devices_load(braid_model_t *model);
void braid_devices_unload(braid_model_t *model);

/* The launches of a context, whose `env` gets `submit` and `finish`; NULL and the error set where
 * there is no memory. */
braid_launches *braid_launches_create(braid_model_t *model, braid_env *env);
void braid_launches_close(braid_launches *launches);

/* Lets what functions do on their devices be observed by another than that of the context. */
void braid_launches_observe(braid_launches *launches, struct braid_observer *observer);

/* Calls `body`, in which `submit` and `finish` may be called, and waits for what is under way then.
 * Its status, or -1 and the failure recorded where a launch failed. */
int32_t braid_launches_run(braid_launches *launches, int32_t (*body)(void *), void *argument);

/* Runs function `number`, which runs on the launching thread, within `braid_launches_run`. Its
 * status. */
int32_t braid_launches_here(braid_launches *launches, int64_t number, void *const *buffers);

/* Runs function `number` as a stage of a stream, and returns its status when it has ended; `error`
 * says why it failed. One thread at a time for a device: its arena is in use. `buffers` are the
 * function's inputs and outputs. */
int32_t braid_launches_stage(braid_launches *launches, int64_t number, void **buffers,
                             unsigned float_mode, char *error, size_t size);

/* Moves what functions on a device have counted to `counts` and `times`; none runs there. */
void braid_launches_collect(braid_launches *launches, int64_t device, uint64_t *counts,
                            uint64_t *times);

/* Nanoseconds that launches on a device took by its own account, since they were reset. */
int64_t braid_launches_time(const braid_launches *launches, int64_t device);
void braid_launches_reset(braid_launches *launches);

/* The launches of the context that `env` is of. */
braid_launches *braid_context_launches(const braid_env *env);

#endif /* BRAID_DEVICES_H */
