/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Barriers in shared memory that count arrivals and bytes of copies. Semantics: PTX ISA,
 * "mbarrier". Operations of a thread before its arrival are known to threads that wait for the
 * phase.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

typedef struct mbarrier {
  char *address;
  int64_t count, pending; /* arrivals of a phase, and pending ones */
  int64_t bytes;          /* that copies of this phase have still to bring */
  uint32_t phase;         /* how many have ended */
  uint32_t epoch;         /* when it was initialized, and by whom */
  int thread;
  uint32_t fence;
  uint32_t *gathered, *ended; /* clocks of arrivals in this phase, and up to the last one */
} mbarrier;

static mbarrier barriers[MAX_MBARRIERS];
static int barrier_count;

static launch *const L = &braid_gpu_current;

void braid_gpu_start_mbarriers(void) {
  for (int n = 0; n < barrier_count; ++n) {
    free(barriers[n].gathered);
    free(barriers[n].ended);
  }
  barrier_count = 0;
}

static mbarrier *find(const char *address, const char *what) {
  for (int n = 0; n < barrier_count; ++n) {
    mbarrier *own = &barriers[n];
    if (own->address != address)
      continue;
    if (own->thread != L->thread && own->epoch == L->epoch)
      braid_gpu_fail("%s of an mbarrier that thread %d has initialized since the barrier", what,
                     own->thread);
    return own;
  }
  braid_gpu_fail("%s of an mbarrier that is not initialized", what);
  return NULL;
}

EMULATED void braid_gpu_mbarrier_init_shared__cta_b64(char *address, int32_t count) {
  size_t bytes = (size_t)braid_gpu_clock_count() * sizeof(uint32_t);
  if (barrier_count == MAX_MBARRIERS || count < 1) {
    braid_gpu_fail("mbarrier %d for %d arrivals, expected at most %d for 1 or more", barrier_count,
                   count, MAX_MBARRIERS);
    return;
  }
  braid_gpu_write(address, sizeof(int64_t), sizeof(int64_t));
  braid_gpu_reserve(address, sizeof(int64_t));
  mbarrier *own = &barriers[barrier_count++];
  *own = (mbarrier){.address = address, .count = count, .pending = count, .epoch = L->epoch};
  own->thread = L->thread;
  own->fence = braid_gpu_fences();
  own->gathered = calloc(1, bytes);
  own->ended = calloc(1, bytes);
  if (own->gathered == NULL || own->ended == NULL || !braid_gpu_use_clocks())
    braid_gpu_fail("out of memory for mbarriers");
}

static void wake(const mbarrier *own) {
  for (int64_t t = 0; t < L->threads; ++t)
    if (L->fibers[t].state == AT_MBARRIER && L->fibers[t].waits_for == own)
      L->fibers[t].state = READY;
}

static void end_phase_if_complete(mbarrier *own) {
  if (own->pending == 0 && own->bytes == 0) {
    ++own->phase;
    own->pending = own->count;
    memcpy(own->ended, own->gathered, (size_t)braid_gpu_clock_count() * sizeof(uint32_t));
  }
  wake(own);
}

static void arrive(mbarrier *own) {
  if (own->pending == 0) {
    braid_gpu_fail("arrives at an mbarrier that %lld arrivals have been counted at already",
                   (long long)own->count);
    return;
  }
  braid_gpu_publish(own->gathered);
  --own->pending;
  end_phase_if_complete(own);
}

EMULATED void braid_gpu_mbarrier_arrive_shared__cta_b64(char *address) {
  mbarrier *own = find(address, "arrival");
  if (own != NULL)
    arrive(own);
}

EMULATED void braid_gpu_mbarrier_arrive_expect_tx_shared__cta_b64(char *address, int32_t bytes) {
  mbarrier *own = find(address, "arrival");
  if (own == NULL)
    return;
  own->bytes += bytes;
  arrive(own);
}

EMULATED void braid_gpu_mbarrier_try_wait_parity_shared__cta_b64(char *address, int32_t parity) {
  mbarrier *own = find(address, "wait");
  if (own == NULL)
    return;
  while ((own->phase & 1) == ((uint32_t)parity & 1)) {
    if (own->pending == 0 && braid_gpu_land_tensors((int)(own - barriers)))
      continue;
    L->fibers[L->thread].waits_for = own;
    braid_gpu_wait(AT_MBARRIER);
  }
  braid_gpu_acquire(own->ended);
  braid_gpu_learn(L->threads + MAX_WARPS + (own - barriers), own->phase);
}

int braid_gpu_mbarrier_for_copy(const char *address) {
  mbarrier *own = find(address, "copy");
  if (own == NULL)
    return 0;
  if (own->fence == braid_gpu_fences_of(own->thread))
    braid_gpu_fail("copy for an mbarrier that was initialized without a fence behind");
  return (int)(own - barriers);
}

uint32_t braid_gpu_mbarrier_phase(int number) { return barriers[number].phase; }

void braid_gpu_mbarrier_land(int number, int64_t bytes) {
  barriers[number].bytes -= bytes;
  end_phase_if_complete(&barriers[number]);
}

void braid_gpu_mbarrier_wake(int number) { wake(&barriers[number]); }

void braid_gpu_report_mbarrier(int thread) {
  const mbarrier *own = L->fibers[thread].waits_for;
  braid_gpu_fail("thread %d waits at mbarrier %d, in whose phase %u %lld arrivals and %lld bytes "
                 "do not come",
                 thread, (int)(own - barriers), own->phase, (long long)own->pending,
                 (long long)own->bytes);
}
