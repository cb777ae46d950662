/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How a thread rounds and whether it keeps denormals: the same in all that share a loop, since
 * else the result would depend on who computed what.
 */
#ifndef BRAID_FLOAT_MODE_H
#define BRAID_FLOAT_MODE_H

#if defined(__x86_64__)

static inline unsigned braid_float_mode(void) {
  return __builtin_ia32_stmxcsr() & ~0x3fu; /* without the flags of what has happened */
}

static inline void braid_set_float_mode(unsigned mode) {
  if (mode != braid_float_mode())
    __builtin_ia32_ldmxcsr(mode);
}

#elif defined(__aarch64__)

static inline unsigned braid_float_mode(void) {
  unsigned long mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return (unsigned)mode;
}

static inline void braid_set_float_mode(unsigned mode) {
  if (mode != braid_float_mode())
    __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)mode));
}

#endif

#endif /* BRAID_FLOAT_MODE_H */
