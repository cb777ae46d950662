/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How threads wait: a bounded time awake, since being woken takes tens of microseconds, and then
 * asleep, since whoever they wait for may need their CPU. Giving the CPU away (sched_yield) would
 * cost a time slice of every other process.
 */
#ifndef BRAID_WAITING_H
#define BRAID_WAITING_H

#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Longer than most gaps between two kernels, much shorter than a time slice. */
#define BRAID_SPIN_NS 200000u

static inline uint64_t braid_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A time awake; zero at first. */
typedef struct braid_spin {
  uint64_t until;
  unsigned turns;
} braid_spin;

/* Passes a moment; false once the time is over. */
static inline bool braid_spin_on(braid_spin *spin) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
  if (++spin->turns % 32 != 0)
    return true;
  uint64_t now = braid_now();
  if (spin->until == 0)
    spin->until = now + BRAID_SPIN_NS;
  return now < spin->until;
}

/* Sleeps unless the 32 bits at `word` are no longer `seen`; may return early. */
static inline void braid_futex_wait(void *word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

/* Wakes up to `count` threads that sleep on `word`. */
static inline void braid_futex_wake(void *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

#endif /* BRAID_WAITING_H */
