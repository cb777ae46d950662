/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches, blocks and threads: a fiber a thread, which gives way where it has to wait.
 */
#define _GNU_SOURCE
#include "emulator.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { FAILURE_CHARS = 240, SCHEDULER = -1 };

launch braid_gpu_current = {.name = "a launch", .thread = SCHEDULER};

static pthread_mutex_t one_launch = PTHREAD_MUTEX_INITIALIZER;
static char *stacks;
static void *scheduler; /* where it goes on */
static bool failed;
static char failure[FAILURE_CHARS];

static launch *const L = &braid_gpu_current;

char *braid_gpu_stack(int thread) { return stacks + (size_t)thread * STACK_BYTES; }

/* ---- Failures ---- */

void braid_gpu_fail(const char *format, ...) {
  if (!failed) {
    char reason[FAILURE_CHARS];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (L->thread == SCHEDULER)
      snprintf(failure, sizeof failure, "%.60s, block %lld: %.150s", L->name, (long long)L->block,
               reason);
    else
      snprintf(failure, sizeof failure, "%.60s, block %lld, thread %d: %.140s", L->name,
               (long long)L->block, L->thread, reason);
    failed = true;
  }
  if (L->thread != SCHEDULER) {
    void *never;
    braid_gpu_switch(&never, scheduler);
  }
}

/* Called by the program of a model when it ends: not 0 after a failure. */
EMULATED int32_t braid_gpu_status(const braid_env *env) {
  pthread_mutex_lock(&one_launch);
  bool told = failed;
  pthread_mutex_unlock(&one_launch);
  if (told)
    env->fail(env, failure);
  return told ? 1 : 0;
}

/* ---- Threads ---- */

void braid_gpu_wait(fiber_state state) {
  fiber *own = &L->fibers[L->thread];
  own->state = state;
  braid_gpu_switch(&own->stack_pointer, scheduler);
}

static void release_barrier(void) {
  L->at_barrier = 0;
  ++L->epoch;
  braid_gpu_join_all_clocks();
  for (int64_t t = 0; t < L->threads; ++t)
    if (L->fibers[t].state == AT_BARRIER)
      L->fibers[t].state = READY;
}

EMULATED void braid_gpu_barrier(void) {
  ++L->at_barrier;
  if (L->at_barrier == L->threads)
    release_barrier();
  else
    braid_gpu_wait(AT_BARRIER);
}

static void run_thread(void) {
  L->body(L->slots);
  braid_gpu_check_stores(L->thread);
  --L->live;
  L->fibers[L->thread].state = ENDED;
  braid_gpu_leave_warp(L->thread);
  void *never;
  braid_gpu_switch(&never, scheduler);
}

/* A fiber that begins in `run_thread`. */
static void *new_stack(int thread) {
  uint64_t *top = (uint64_t *)(void *)(braid_gpu_stack(thread) + STACK_BYTES);
#if defined(__x86_64__)
  top[-1] = 0;
  top[-2] = (uint64_t)(uintptr_t)run_thread;
  memset(top - 8, 0, 6 * sizeof *top);
  return top - 8;
#else
  memset(top - 20, 0, 20 * sizeof *top);
  top[-20 + 11] = (uint64_t)(uintptr_t)run_thread; /* x30 */
  return top - 20;
#endif
}

/* ---- Blocks ---- */

static void report_deadlock(void) {
  int64_t ended = L->threads - L->live;
  for (int t = 0; t < L->threads; ++t) {
    if (L->fibers[t].state == AT_MBARRIER) {
      braid_gpu_report_mbarrier(t);
      return;
    }
    if (L->fibers[t].state == IN_WARPGROUP) {
      braid_gpu_fail("thread %d waits in wgmma for threads that do not come", t);
      return;
    }
    if (L->fibers[t].state == IN_WARP) {
      braid_gpu_fail("thread %d waits in %s for lanes that do not come (%lld threads wait at a "
                     "barrier, %lld have ended)",
                     t, L->fibers[t].exchange->name, (long long)L->at_barrier, (long long)ended);
      return;
    }
  }
  braid_gpu_fail("divergent barrier: %lld threads wait at it, %lld have ended",
                 (long long)L->at_barrier, (long long)ended);
}

static void run_block(void) {
  L->live = L->threads;
  L->at_barrier = 0;
  L->first_epoch = ++L->epoch;
  if (!braid_gpu_start_block()) {
    braid_gpu_fail("out of memory for the shadow of shared memory");
    return;
  }
  braid_gpu_start_copies();
  braid_gpu_start_clocks();
  braid_gpu_start_mbarriers();
  braid_gpu_start_tensors();
  braid_gpu_start_warpgroups();
  for (int t = 0; t < L->threads; ++t)
    L->fibers[t] = (fiber){new_stack(t), READY, NULL, NULL};
  while (L->live > 0) {
    bool any = false;
    for (int t = 0; t < L->threads && !failed; ++t) {
      if (L->fibers[t].state != READY)
        continue;
      any = true;
      L->thread = t;
      braid_gpu_switch(&scheduler, L->fibers[t].stack_pointer);
      L->thread = SCHEDULER;
    }
    if (!any && !failed)
      report_deadlock();
    if (failed)
      return;
  }
}

/* It is mapped for the launch only: otherwise code that is loaded later could be mapped too far
 * apart for its offsets. */
static bool map_stacks(void) {
  size_t bytes = (size_t)L->threads * STACK_BYTES;
  void *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stacks = memory == MAP_FAILED ? NULL : memory;
  return stacks != NULL;
}

static void unmap_stacks(void) {
  if (stacks != NULL)
    munmap(stacks, (size_t)L->threads * STACK_BYTES);
  stacks = NULL;
}

/* Runs a kernel: `body` on `slots` for each thread of each block. */
EMULATED void braid_gpu_launch(const char *name, void (*body)(void *const *), void *const *slots,
                               int64_t blocks, int64_t threads, const region *regions,
                               int64_t region_count) {
  pthread_mutex_lock(&one_launch);
  L->name = name;
  L->body = body;
  L->slots = slots;
  L->blocks = blocks;
  L->threads = threads;
  L->regions = regions;
  L->region_count = region_count;
  L->block = 0;
  L->thread = SCHEDULER;
  if (!failed && (threads < 1 || threads > MAX_THREADS))
    braid_gpu_fail("a block of %lld threads, expected 1 to %d", (long long)threads, MAX_THREADS);
  if (!failed && !map_stacks())
    braid_gpu_fail("out of memory for the stacks of threads");
  for (; L->block < blocks && !failed; ++L->block)
    run_block();
  unmap_stacks();
  braid_gpu_free_copies();
  braid_gpu_start_mbarriers();
  braid_gpu_free_clocks();
  braid_gpu_free_tensors();
  braid_gpu_free_warpgroups();
  L->name = "a launch";
  pthread_mutex_unlock(&one_launch);
}

/* ---- Where a thread is ---- */

EMULATED int32_t braid_gpu_read_ptx_sreg_tid_x(void) { return L->thread; }
EMULATED int32_t braid_gpu_read_ptx_sreg_ntid_x(void) { return (int32_t)L->threads; }
EMULATED int32_t braid_gpu_read_ptx_sreg_ctaid_x(void) { return (int32_t)L->block; }
EMULATED int32_t braid_gpu_read_ptx_sreg_nctaid_x(void) { return (int32_t)L->blocks; }
EMULATED int32_t braid_gpu_read_ptx_sreg_laneid(void) { return L->thread % WARP; }

EMULATED void braid_gpu_barrier_cta_sync_aligned_all(int32_t number) {
  if (number != 0)
    braid_gpu_fail("barrier %d, of which there is only 0", number);
  braid_gpu_barrier();
}

/* Registers move between warps, which the assembler checks. */
EMULATED void braid_gpu_setmaxnreg_inc_sync_aligned_u32(int32_t count) {
  if (count % 8 != 0 || count < 24 || count > 256)
    braid_gpu_fail("%d registers for a thread, expected a multiple of 8 from 24 to 256", count);
}

EMULATED void braid_gpu_setmaxnreg_dec_sync_aligned_u32(int32_t count) {
  braid_gpu_setmaxnreg_inc_sync_aligned_u32(count);
}
