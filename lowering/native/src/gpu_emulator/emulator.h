/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Runs kernels of a GPU on the CPU, and checks what they do.
 *
 * One object with all of this is linked to the code of each model whose kernels are emulated. Their
 * code is that of the GPU, compiled for the CPU: each access to memory calls `braid_gpu_read` or
 * `braid_gpu_write` before it, and an instruction that only a GPU has is a function here. The
 * threads of a block are fibers on one thread of the host; one block runs after the other.
 *
 * An error ends the launch, and is kept: the model fails from then on (`braid_gpu_status`).
 */
#ifndef BRAID_GPU_EMULATOR_H
#define BRAID_GPU_EMULATOR_H

#include <braid/runtime.h>

#include <stdbool.h>
#include <stdint.h>

enum {
  WARP = 32,
  MAX_THREADS = 1024,
  MAX_WARPS = MAX_THREADS / WARP,
  MAX_MBARRIERS = 64,
  MAX_WARPGROUPS = 4 /* that multiply by `wgmma` */
};

/* Functions that generated code calls are not exported by the library that contains them. */
#define EMULATED __attribute__((visibility("hidden")))

/* Memory that a kernel may use. */
typedef enum region_kind { READ_ONLY, WRITABLE, SHARED } region_kind;

typedef struct region {
  char *begin;
  int64_t bytes;
  int64_t kind;
  const char *name;
} region;

typedef enum fiber_state {
  READY,
  AT_BARRIER,
  AT_MBARRIER,
  IN_WARP,
  IN_WARPGROUP,
  ENDED
} fiber_state;

/* The values that a lane brings to an exchange of its warp, and takes from it. */
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
  exchange *exchange;    /* that it waits in */
  const void *waits_for; /* an mbarrier */
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
  int64_t at_barrier;            /* waiting threads among these */
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

/* Whether an exchange in which other lanes of a warp wait can run, now that one lane fewer may
 * come. */
EMULATED void braid_gpu_leave_warp(int thread);

/* Gets the shadow of shared memory ready for a block, whose contents are arbitrary. */
EMULATED bool braid_gpu_start_block(void);

/* Functions that are called before an access: they check bounds, alignment (a power of two), and
 * races. */
EMULATED void braid_gpu_read(const char *address, int64_t bytes, int64_t alignment);
EMULATED void braid_gpu_write(const char *address, int64_t bytes, int64_t alignment);
EMULATED void braid_gpu_atomic(const char *address, int64_t bytes, int64_t alignment);

/* A copy to shared memory begins; its destination must not be used until it ends. */
EMULATED void braid_gpu_begin_copy(const char *destination, int64_t bytes);
EMULATED void braid_gpu_end_copy(const char *destination, int64_t bytes);

/* Drops copies that have not landed, for a block; and their memory, for a launch. */
EMULATED void braid_gpu_start_copies(void);
EMULATED void braid_gpu_free_copies(void);

/* ---- The threads' knowledge of each other (clocks.c): only while `braid_gpu_use_clocks` holds
 * ---- */

EMULATED void braid_gpu_start_clocks(void);
EMULATED void braid_gpu_free_clocks(void);
EMULATED bool braid_gpu_use_clocks(void);
EMULATED int64_t braid_gpu_clock_count(void);
/* The thread's own; components are threads, then warps for their products, then mbarriers. */
EMULATED uint32_t braid_gpu_clock(void);
EMULATED bool braid_gpu_knows(int64_t component, uint32_t clock);
EMULATED void braid_gpu_learn(int64_t component, uint32_t clock);
EMULATED void braid_gpu_publish(uint32_t *into);
EMULATED void braid_gpu_acquire(const uint32_t *from);
EMULATED void braid_gpu_join_clocks(int64_t first, uint32_t members);
EMULATED void braid_gpu_join_all_clocks(void);

/* ---- mbarriers (mbarrier.c) ---- */

EMULATED void braid_gpu_start_mbarriers(void);
EMULATED void braid_gpu_report_mbarrier(int thread);
/* The index of the mbarrier at an address to which a copy of this thread reports. */
EMULATED int braid_gpu_mbarrier_for_copy(const char *address);
EMULATED uint32_t braid_gpu_mbarrier_phase(int number);
EMULATED void braid_gpu_mbarrier_land(int number, int64_t bytes);
EMULATED void braid_gpu_mbarrier_wake(int number);

/* ---- Copies of tensors (tensors.c) ---- */

EMULATED void braid_gpu_start_tensors(void);
EMULATED void braid_gpu_free_tensors(void);
/* Lands what reports to an mbarrier; whether there was any. */
EMULATED bool braid_gpu_land_tensors(int barrier);
EMULATED void braid_gpu_check_stores(int thread);

/* ---- Products of 128 threads (warpgroup.c) ---- */

EMULATED void braid_gpu_start_warpgroups(void);
EMULATED void braid_gpu_free_warpgroups(void);
EMULATED uint32_t braid_gpu_products(int group);
EMULATED float braid_gpu_float_of_half(uint16_t bits);

/* ---- Shared memory as the asynchronous proxy uses it (memory.c) ---- */

/* Checks a read; the writer must have fenced since. */
EMULATED void braid_gpu_async_read(const char *address, int64_t bytes);
/* A store of a tensor of this thread, from 1 on, reads the bytes, or no more (0). */
EMULATED void braid_gpu_set_storer(const char *address, int64_t bytes, int32_t storer);
/* Product number `product` of a warpgroup reads the bytes. */
EMULATED void braid_gpu_set_product(const char *address, int64_t bytes, int group,
                                    uint32_t product);
/* Bytes of a copy are there, for those that know this of the mbarrier `writer`. */
EMULATED void braid_gpu_land_copy(const char *address, int64_t bytes, int32_t writer,
                                  uint32_t clock);
/* Nothing else may use the bytes. */
EMULATED void braid_gpu_reserve(const char *address, int64_t bytes);
/* How many fences between proxies a thread has passed. */
EMULATED uint32_t braid_gpu_fences(void);
EMULATED uint32_t braid_gpu_fences_of(int thread);
/* The object in shared memory at an address of which only the last bits are known, or NULL. */
EMULATED char *braid_gpu_shared_at(int64_t low, int bits);

/* The stacks of fibers, one after the other. */
enum { STACK_BYTES = 64 * 1024 };
EMULATED char *braid_gpu_stack(int thread);

/* Saves where the caller is, and goes on where `to` was saved. */
EMULATED void braid_gpu_switch(void **from, void *to);

#endif /* BRAID_GPU_EMULATOR_H */
