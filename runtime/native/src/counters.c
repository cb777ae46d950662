/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counters that only grow, by which inter-op streams and launches wait for each other.
 */
#define _GNU_SOURCE
#include "internal.h"
#include "waiting.h"

#include <limits.h>

/* On the line of a counter, behind it: how many wait for it asleep. */
enum { SLEEPERS = 1 };

void braid_post(int64_t *counter, int64_t count) {
  /* Sequentially consistent with a waiter's accesses: it sees the count, or is seen here. */
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
