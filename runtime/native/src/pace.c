/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * These variables serve all callers at once and hold only estimates, so relaxed accesses suffice.
 */
#define _GNU_SOURCE
#include "pace.h"

#include "waiting.h"

#include <limits.h>
#include <stdatomic.h>

/* In nanoseconds: some time slices, and as long as a user does not notice. */
#define SHORTEST 10000000u
#define LONGEST 320000000u

/* A growth was too early if crowding follows within so many pauses. Threads of another runtime that
 * spin after its runs, which alternate with ours, compete later than that. */
enum { PROBATION = 2 };

static atomic_int limit = INT_MAX; /* of workers in a team */
static _Atomic uint64_t pause_ns = SHORTEST;
static _Atomic uint64_t grows_at;
static _Atomic uint64_t grew_at;

int braid_pace_allowed(int wanted) {
  int allowed = atomic_load_explicit(&limit, memory_order_relaxed);
  if (allowed >= wanted)
    return wanted;
  uint64_t now = braid_now();
  uint64_t at = atomic_load(&grows_at);
  if (now < at || !atomic_compare_exchange_strong(&grows_at, &at, now + atomic_load(&pause_ns)))
    return allowed;
  allowed = 2 * allowed + 1;
  atomic_store(&grew_at, now);
  atomic_store(&limit, allowed);
  return allowed < wanted ? allowed : wanted;
}

void braid_pace_crowded(int workers, int crowded) {
  int allowed = workers > crowded ? workers - crowded : 0;
  if (atomic_load(&limit) <= allowed)
    return; /* another team has seen it as well */
  uint64_t now = braid_now();
  uint64_t pause = atomic_load(&pause_ns);
  if (now - atomic_load(&grew_at) > PROBATION * pause)
    pause = SHORTEST;
  else if (pause < LONGEST)
    pause *= 2;
  atomic_store(&pause_ns, pause);
  atomic_store(&grows_at, now + pause);
  atomic_store(&limit, allowed);
}

void braid_pace_reset(void) {
  atomic_store(&limit, INT_MAX);
  atomic_store(&pause_ns, SHORTEST);
  atomic_store(&grows_at, 0);
  atomic_store(&grew_at, 0);
}
