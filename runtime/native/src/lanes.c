/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How lanes wait for each other: a counter for each, which its waiters look at.
 */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <sched.h>

/* About as long as it takes to be woken by the system: kernels end within microseconds. */
enum { SPINS = 2000 };

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void braid_post(int64_t *done, int64_t count) { __atomic_store_n(done, count, __ATOMIC_RELEASE); }

void braid_wait(const int64_t *done, int64_t count) {
  for (int spin = 0; spin < SPINS; ++spin) {
    if (__atomic_load_n(done, __ATOMIC_ACQUIRE) >= count)
      return;
    relax();
  }
  /* With more lanes than idle CPUs, the lane that is waited for may need this one's. */
  while (__atomic_load_n(done, __ATOMIC_ACQUIRE) < count)
    sched_yield();
}
