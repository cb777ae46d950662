/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * `cp.async`: copies to shared memory that land only where their thread waits for them, and are
 * seen by other threads after the barrier that follows. Semantics: PTX ISA, "cp.async" and
 * "cp.async.wait_group".
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 };

typedef struct copy {
  char *destination;
  int64_t bytes;
  int64_t group;
  char data[MOST_BYTES];
} copy;

/* Copies of a thread that have not landed, oldest first, and how many groups it has closed. */
typedef struct queue {
  copy *copies;
  int count, room;
  int64_t groups;
} queue;

static queue queues[MAX_THREADS];

static launch *const L = &braid_gpu_current;

void braid_gpu_start_copies(void) {
  for (int t = 0; t < MAX_THREADS; ++t) {
    queues[t].count = 0;
    queues[t].groups = 0;
  }
}

void braid_gpu_free_copies(void) {
  for (int t = 0; t < MAX_THREADS; ++t)
    free(queues[t].copies);
  memset(queues, 0, sizeof queues);
}

/* The first `taken` bytes are the source's, the others 0. */
static void issue(char *destination, const char *source, int64_t bytes, int64_t taken) {
  queue *own = &queues[L->thread];
  if (taken < 0 || taken > bytes)
    braid_gpu_fail("cp.async takes %lld of %lld bytes", (long long)taken, (long long)bytes);
  if (taken > 0) {
    if ((uintptr_t)source % (uintptr_t)bytes != 0)
      braid_gpu_fail("cp.async reads %lld bytes at %p, which is not aligned to them",
                     (long long)bytes, (const void *)source);
    braid_gpu_read(source, taken, 1);
  }
  braid_gpu_begin_copy(destination, bytes);
  if (own->count == own->room) {
    int room = own->room ? 2 * own->room : 16;
    copy *larger = realloc(own->copies, (size_t)room * sizeof *larger);
    if (larger == NULL) {
      braid_gpu_fail("out of memory for copies that have not landed");
      return;
    }
    own->copies = larger;
    own->room = room;
  }
  copy *added = &own->copies[own->count++];
  *added = (copy){destination, bytes, own->groups, {0}};
  memcpy(added->data, source, (size_t)taken);
}

/* Lands all copies of groups before this one. */
static void land(int64_t group) {
  queue *own = &queues[L->thread];
  int landed = 0;
  while (landed < own->count && own->copies[landed].group < group) {
    const copy *next = &own->copies[landed++];
    braid_gpu_end_copy(next->destination, next->bytes);
    memcpy(next->destination, next->data, (size_t)next->bytes);
  }
  own->count -= landed;
  memmove(own->copies, own->copies + landed, (size_t)own->count * sizeof *own->copies);
}

#define CP_ASYNC(cache, size)                                                                      \
  EMULATED void braid_gpu_cp_async_##cache##_shared_global_##size(char *destination,               \
                                                                  const char *source) {            \
    issue(destination, source, size, size);                                                        \
  }                                                                                                \
  EMULATED void braid_gpu_cp_async_##cache##_shared_global_##size##_s(                             \
      char *destination, const char *source, int32_t taken) {                                      \
    issue(destination, source, size, taken);                                                       \
  }

CP_ASYNC(ca, 4)
CP_ASYNC(ca, 8)
CP_ASYNC(ca, 16)
CP_ASYNC(cg, 16)

EMULATED void braid_gpu_cp_async_commit_group(void) { ++queues[L->thread].groups; }

EMULATED void braid_gpu_cp_async_wait_group(int32_t left) { land(queues[L->thread].groups - left); }

EMULATED void braid_gpu_cp_async_wait_all(void) { land(INT64_MAX); }
