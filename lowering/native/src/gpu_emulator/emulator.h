/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Runs kernels of a GPU on the CPU, and checks what they do.
 *
 * One object with all of this is linked to the code of each model whose kernels are emulated. Their
 * code is that of the GPU, compiled for the CPU: each access to memory calls `braid_gpu_read` or
 * `braid_gpu_write` before it, and what is an instruction of the GPU alone is a function here. The
 * threads of a block are fibers on one thread of the host; one block runs after the other.
 *
 * What is wrong ends the launch, and is kept: the model fails from then on (`braid_gpu_status`).
 */
#ifndef BRAID_GPU_EMULATOR_H
#define BRAID_GPU_EMULATOR_H

#include <braid/runtime.h>

#include <stdbool.h>
#include <stdint.h>

enum { WARP = 32, MAX_THREADS = 1024, MAX_WARPS = MAX_THREADS / WARP };

/* What generated code calls is not exported by the library that it becomes a part of. */
#define EMULATED __attribute__((visibility("hidden")))

/* Memory that a kernel may use. */
typedef enum region_kind { READ_ONLY, WRITABLE, SHARED } region_kind;

typedef struct region {
  char *begin;
  int64_t bytes;
  int64_t kind;
  const char *name;
} region;

typedef enum fiber_state { READY, AT_BARRIER, IN_WARP, ENDED } fiber_state;

/* What a lane brings to an exchange of its warp, and takes from it. */
typedef struct exchange {
  const char *name;
  void (*run)(struct exchange *const lanes[WARP], uint32_t members);
  uint32_t members; /* the lanes that take part */
  uint32_t in[16];
  uint32_t out[8];
  void *address;
} exchange;

typedef struct fiber {
  void *stack_pointer;
  fiber_state state;
  exchange *exchange; /* that it waits in */
} fiber;

/* A launch; the only one that runs. */
typedef struct launch {
  const char *name;
  void (*body)(void *const *slots);
  void *const *slots;
  int64_t blocks, threads;
  const region *regions;
  int64_t region_count;
  int64_t block;                 /* the one that runs */
  int thread;                    /* the one that runs, -1 for the scheduler */
  int64_t live;                  /* threads that have not ended */
  int64_t at_barrier;            /* of these, those that wait */
  uint32_t epoch;                /* counts barriers and blocks, from 1 on */
  uint32_t first_epoch;          /* of this block */
  uint32_t warp_time[MAX_WARPS]; /* counts barriers of a warp, likewise */
  fiber fibers[MAX_THREADS];
} launch;

extern EMULATED launch braid_gpu_current;

/* Ends the launch with a reason; does not return in a thread of a block. */
EMULATED void braid_gpu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lets other threads run until this one is ready again. */
EMULATED void braid_gpu_wait(fiber_state state);

/* The lanes of `members` bring theirs; returns when `run` was called for all of them at once. */
EMULATED void braid_gpu_exchange(exchange *own);

/* Whether an exchange that others of a warp wait in can run, now that one lane less may come. */
EMULATED void braid_gpu_leave_warp(int thread);

/* Gets the shadow of shared memory ready for a block, whose contents are arbitrary. */
EMULATED bool braid_gpu_start_block(void);

/* What is called before an access: checks bounds, alignment (a power of two), and races. */
EMULATED void braid_gpu_read(const char *address, int64_t bytes, int64_t alignment);
EMULATED void braid_gpu_write(const char *address, int64_t bytes, int64_t alignment);

/* A copy to shared memory begins, which nobody may use until it ends, where its bytes change. */
EMULATED void braid_gpu_begin_copy(const char *destination, int64_t bytes);
EMULATED void braid_gpu_end_copy(const char *destination, int64_t bytes);

/* Forgets copies that have not landed, for a block; and their memory, for a launch. */
EMULATED void braid_gpu_start_copies(void);
EMULATED void braid_gpu_free_copies(void);

/* The stacks of fibers, one after the other. */
enum { STACK_BYTES = 64 * 1024 };
EMULATED char *braid_gpu_stack(int thread);

/* Saves where the caller is, and goes on where `to` was saved. */
EMULATED void braid_gpu_switch(void **from, void *to);

#endif /* BRAID_GPU_EMULATOR_H */
