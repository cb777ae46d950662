/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How lanes wait for each other: a counter for each, which its waiters look at for a while. Then
 * they sleep, since the lane that they wait for may need their CPU; giving the CPU away
 * (sched_yield) would cost a time slice of every other process.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <limits.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <sched.h>
#endif

/* About a tenth of a millisecond: most kernels are shorter, and being woken takes as long. */
enum { SPINS = 8192 };

/* On the line of a counter, behind it: how many wait for it asleep. */
enum { SLEEPERS = 1 };

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Sleeps unless the counter is no longer `seen`; may return early. The system compares 32 bits,
 * the lower ones of a little-endian CPU. */
static void sleep_on(int64_t *counter, int64_t seen) {
#ifdef __linux__
  syscall(SYS_futex, counter, FUTEX_WAIT_PRIVATE, (uint32_t)seen, NULL, NULL, 0);
#else
  (void)counter;
  (void)seen;
  sched_yield();
#endif
}

static void wake_all(int64_t *counter) {
#ifdef __linux__
  syscall(SYS_futex, counter, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
#else
  (void)counter;
#endif
}

void braid_post(int64_t *counter, int64_t count) {
  /* In one order with what a waiter does: it sees the count, or is seen here. */
  __atomic_store_n(counter, count, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&counter[SLEEPERS], __ATOMIC_SEQ_CST) > 0)
    wake_all(counter);
}

void braid_wait(int64_t *counter, int64_t count) {
  for (int spin = 0; spin < SPINS; ++spin) {
    if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) >= count)
      return;
    relax();
  }
  __atomic_fetch_add(&counter[SLEEPERS], 1, __ATOMIC_SEQ_CST);
  for (int64_t seen; (seen = __atomic_load_n(counter, __ATOMIC_SEQ_CST)) < count;)
    sleep_on(counter, seen);
  __atomic_fetch_sub(&counter[SLEEPERS], 1, __ATOMIC_RELAXED);
}
