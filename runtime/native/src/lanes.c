/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Lanes run side by side, and one may wait for another: each thread gets a range of them that it
 * keeps. They wait by a counter for each lane.
 */
#define _GNU_SOURCE
#include "internal.h"
#include "pool.h"
#include "waiting.h"

#include <limits.h>

/* On the line of a counter, behind it: how many wait for it asleep. */
enum { SLEEPERS = 1 };

void braid_post(int64_t *counter, int64_t count) {
  /* In one order with what a waiter does: it sees the count, or is seen here. */
  __atomic_store_n(counter, count, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&counter[SLEEPERS], __ATOMIC_SEQ_CST) > 0)
    braid_futex_wake(counter, INT_MAX);
}

void braid_wait(int64_t *counter, int64_t count) {
  braid_spin spin = {0};
  do
    if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) >= count)
      return;
  while (braid_spin_on(&spin));
  __atomic_fetch_add(&counter[SLEEPERS], 1, __ATOMIC_SEQ_CST);
  /* The system compares 32 bits, the lower ones of a little-endian CPU. */
  for (int64_t seen; (seen = __atomic_load_n(counter, __ATOMIC_SEQ_CST)) < count;)
    braid_futex_wait(counter, (uint32_t)seen);
  __atomic_fetch_sub(&counter[SLEEPERS], 1, __ATOMIC_RELAXED);
}

static void run_range(braid_seat *seat) {
  braid_team *team = seat->team;
  int64_t rank = seat - team->seats;
  team->body(team->ctx, team->count * rank / team->size, team->count * (rank + 1) / team->size);
}

void braid_run_lanes(const braid_env *env, braid_body body, void *ctx, int64_t n) {
  int64_t wanted = env->threads < n ? env->threads : n;
  braid_team team;
  team.size = 1;
  if (wanted > 1)
    braid_team_gather(&team, wanted);
  if (team.size == 1) {
    if (n > 0)
      body(ctx, 0, n);
    return;
  }
  team.work = run_range;
  team.body = body;
  team.ctx = ctx;
  team.count = n;
  team.must_come = true;
  braid_team_start(&team);
  run_range(&team.seats[0]);
  braid_team_finish(&team);
}
