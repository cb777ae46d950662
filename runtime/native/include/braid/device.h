/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Device plugins: how the runtime loads code onto a device and runs functions there.
 *
 * A plugin is one table of functions. The runtime has those for `cpu` (a thread of the host),
 * `core` (a thread on a core of its own: `cpu:1` is the second that the process may use),
 * `npu-sim` (a thread of the host that plays instruction streams), `gpu-emulated` (a thread of the
 * host that runs the kernels of a GPU, checked), `rtl` (circuits of an FPGA, simulated) and `cuda`
 * (GPUs of NVIDIA, by their driver). Any other, `NAME`, is a shared object that exports its table
 * as `const braid_device_plugin braid_device_table`: the file that was registered for the name
 * (`braid_device_register`), or `libbraid_device_NAME.so` in a directory of the environment
 * variable BRAID_DEVICE_PATH (separated by colons).
 *
 * Each process opens a device once, for all models; several threads may call its functions at once.
 * A plugin with threads ends them in `close`, and lets a forked child make its own: what was
 * submitted before the fork stays with the parent.
 */
#ifndef BRAID_DEVICE_H
#define BRAID_DEVICE_H

#include <braid/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BRAID_DEVICE_ABI_VERSION 3

/* Room for the text of a failure, with its end. */
enum { BRAID_DEVICE_ERROR = 256 };

typedef struct braid_device_plugin braid_device_plugin;

/* The facts of a model that a device needs. Lives as long as what `load` returns. */
typedef struct braid_device_model {
  const braid_model_v2 *model;
  int64_t device;      /* which of the model's devices this one is */
  const void *weights; /* of its functions: where `copy` put them, or in the host's memory */
} braid_device_model;

/* One launch. It belongs to the runtime and lives at least until it has ended. */
typedef struct braid_submission braid_submission;
struct braid_submission {
  void *program;        /* what `load` gave */
  int64_t function;     /* which of the model's functions */
  const braid_env *env; /* services, as for code of the host */
  void *const *inputs;  /* in the host's memory, as in the function's order */
  void *const *outputs; /* likewise */
  void *arena;          /* from `allocate`; at least the function's `arena_bytes` */
  int64_t after_count;  /* it must not begin before these have ended, on whichever device */
  const braid_submission *const *after;
  /* Computes the function on the calling thread, with the code that was compiled for the host, and
   * sets `status` and `error`. NULL if there is none. */
  void (*compute)(braid_submission *submission);
  /* Set by the runtime: where it was submitted. */
  const braid_device_plugin *plugin;
  void *device;
  /* Set by `submit`: the number under which it is waited for. */
  int64_t ticket;
  /* Set before it ends: `status` is 0, or another number with the reason in `error`; `nanoseconds`
   * is the time by the device's own account. */
  int32_t status;
  char error[BRAID_DEVICE_ERROR];
  int64_t nanoseconds;
};

struct braid_device_plugin {
  int64_t abi_version; /* BRAID_DEVICE_ABI_VERSION */
  const char *name;
  /* Not 0 where the device reads and writes the host's memory: weights are then used where they
   * are, and arenas may be read by the host. */
  int64_t shares_memory;
  /* Opens the device of this name, such as `npu:0`. Returns NULL, with the reason in `error`, if
   * there is none. */
  void *(*open)(const char *name, char error[BRAID_DEVICE_ERROR]);
  /* Nothing is loaded or running any more. */
  void (*close)(void *device);
  /* Makes the functions of a model that are for this device ready. NULL and the reason in `error`
   * on failure. */
  void *(*load)(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]);
  /* May be NULL where there is nothing to undo. */
  void (*unload)(void *device, void *program);
  /* The next three may be NULL for a device that shares the host's memory.
   * Memory of the device, aligned to 64 bytes or to what it needs; NULL where there is no more. */
  void *(*allocate)(void *device, int64_t bytes);
  void (*release)(void *device, void *memory);
  /* Copies from the host's memory into the device's, and returns when that is done; not 0 on
   * failure. */
  int (*copy)(void *device, void *to, const void *from, int64_t bytes);
  /* Starts a launch and returns at once, with its `ticket` set; not 0, and `error` set, where it
   * cannot be started. Launches of a device end in the order in which they were submitted. If one
   * in `after` has failed, it fails as well, with that one's `error`, and computes nothing. */
  int (*submit)(void *device, braid_submission *submission);
  /* Returns when the launch with this ticket has ended. May be called more than once. */
  void (*wait)(void *device, int64_t ticket);
  /* Runs a launch on the calling thread, which belongs to a stream and runs nothing else, and
   * returns when it has ended; it waits for those in `after` as `submit` does. NULL where launches
   * run on the device alone: they are then submitted and waited for. */
  void (*run)(void *device, braid_submission *submission);
  /* How many threads of the host a launch uses at most; 0 for as many as the model runs on. */
  int64_t threads;
  /* Why the calling thread's last `allocate` or `copy` has failed; NULL where nobody can say. The
   * text lasts until its next call. */
  const char *(*why)(void *device);
};

/* Lets devices whose plugin is `name` be opened by the shared object at `path`, from now on. Not 0
 * and the error set on failure. */
BRAID_API int braid_device_register(const char *name, const char *path);

/* Models that the calling thread opens from here on run functions of devices that are missing on
 * the host, as far as there is code for it, and no faster than the target's rates say; 0 ends that.
 * The environment variable BRAID_EMULATE=1 does it for all models of a process. */
BRAID_API void braid_device_emulate(int wanted);

#ifdef __cplusplus
}
#endif

#endif /* BRAID_DEVICE_H */
