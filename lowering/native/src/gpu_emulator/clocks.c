/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The vector clocks of each thread of a block: the operations that it knows to be done; mbarriers
 * pass them on. A thread's own clock counts what it has published; the clocks of a warp's products
 * (`wgmma`) and of mbarriers count completed operations. Only blocks that use mbarriers have
 * clocks: see C. Fidge, "Timestamps in Message-Passing Systems That Preserve the Partial Ordering",
 * 1988.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *clocks; /* a row a thread */
static bool active;

static launch *const L = &braid_gpu_current;

int64_t braid_gpu_clock_count(void) { return L->threads + MAX_WARPS + MAX_MBARRIERS; }

static size_t row_bytes(void) { return (size_t)braid_gpu_clock_count() * sizeof *clocks; }

static uint32_t *clocks_of(int64_t thread) { return clocks + thread * braid_gpu_clock_count(); }

void braid_gpu_start_clocks(void) { active = false; }

void braid_gpu_free_clocks(void) {
  free(clocks);
  clocks = NULL;
  active = false;
}

bool braid_gpu_use_clocks(void) {
  if (active)
    return true;
  if (clocks == NULL)
    clocks = malloc((size_t)L->threads * row_bytes());
  if (clocks == NULL)
    return false;
  memset(clocks, 0, (size_t)L->threads * row_bytes());
  for (int64_t t = 0; t < L->threads; ++t)
    clocks_of(t)[t] = 1;
  active = true;
  return true;
}

uint32_t braid_gpu_clock(void) { return active ? clocks_of(L->thread)[L->thread] : 0; }

bool braid_gpu_knows(int64_t component, uint32_t clock) {
  return active && clocks_of(L->thread)[component] >= clock;
}

void braid_gpu_learn(int64_t component, uint32_t clock) {
  if (active && clocks_of(L->thread)[component] < clock)
    clocks_of(L->thread)[component] = clock;
}

static void join(uint32_t *into, const uint32_t *from) {
  for (int64_t n = 0; n < braid_gpu_clock_count(); ++n)
    if (into[n] < from[n])
      into[n] = from[n];
}

void braid_gpu_publish(uint32_t *into) {
  join(into, clocks_of(L->thread));
  ++clocks_of(L->thread)[L->thread];
}

void braid_gpu_acquire(const uint32_t *from) { join(clocks_of(L->thread), from); }

void braid_gpu_join_clocks(int64_t first, uint32_t members) {
  uint32_t *all = active ? calloc(1, row_bytes()) : NULL;
  if (all == NULL)
    return;
  for (int64_t n = 0; n < WARP; ++n)
    if (members >> n & 1 && first + n < L->threads)
      join(all, clocks_of(first + n));
  for (int64_t n = 0; n < WARP; ++n)
    if (members >> n & 1 && first + n < L->threads) {
      join(clocks_of(first + n), all);
      ++clocks_of(first + n)[first + n];
    }
  free(all);
}

void braid_gpu_join_all_clocks(void) {
  if (!active)
    return;
  uint32_t *all = clocks_of(0);
  for (int64_t t = 1; t < L->threads; ++t)
    join(all, clocks_of(t));
  for (int64_t t = 1; t < L->threads; ++t)
    memcpy(clocks_of(t), all, row_bytes());
  for (int64_t t = 0; t < L->threads; ++t)
    ++clocks_of(t)[t];
}
