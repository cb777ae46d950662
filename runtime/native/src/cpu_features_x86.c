/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Bit positions: Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 2A, CPUID;
 * AMD64 Architecture Programmer's Manual, vol. 3, appendix E. Names: LLVM's.
 */
#define _GNU_SOURCE /* syscall */
#include "internal.h"

#include <cpuid.h>
#include <string.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum cpuid_register { EAX, EBX, ECX, EDX };

/* Register state that the operating system must save for a feature to be usable (XCR0 bits). */
enum xcr0_state {
  STATE_NONE = 0,
  STATE_AVX = 0x6,
  STATE_AVX512 = 0xe6,
  STATE_AMX = 0x60000,
};

typedef struct feature {
  const char *name;
  unsigned leaf;
  unsigned subleaf;
  enum cpuid_register reg;
  unsigned bit;
  uint64_t state;
} feature;

static const feature features[] = {
    {"cx8", 1, 0, EDX, 8, STATE_NONE},
    {"cmov", 1, 0, EDX, 15, STATE_NONE},
    {"mmx", 1, 0, EDX, 23, STATE_NONE},
    {"fxsr", 1, 0, EDX, 24, STATE_NONE},
    {"sse", 1, 0, EDX, 25, STATE_NONE},
    {"sse2", 1, 0, EDX, 26, STATE_NONE},
    {"sse3", 1, 0, ECX, 0, STATE_NONE},
    {"pclmul", 1, 0, ECX, 1, STATE_NONE},
    {"ssse3", 1, 0, ECX, 9, STATE_NONE},
    {"fma", 1, 0, ECX, 12, STATE_AVX},
    {"cx16", 1, 0, ECX, 13, STATE_NONE},
    {"sse4.1", 1, 0, ECX, 19, STATE_NONE},
    {"sse4.2", 1, 0, ECX, 20, STATE_NONE},
    {"crc32", 1, 0, ECX, 20, STATE_NONE}, /* came with SSE4.2 and shares its bit */
    {"movbe", 1, 0, ECX, 22, STATE_NONE},
    {"popcnt", 1, 0, ECX, 23, STATE_NONE},
    {"aes", 1, 0, ECX, 25, STATE_NONE},
    {"xsave", 1, 0, ECX, 27, STATE_NONE}, /* OSXSAVE: usable only once the system enabled it */
    {"avx", 1, 0, ECX, 28, STATE_AVX},
    {"f16c", 1, 0, ECX, 29, STATE_AVX},
    {"rdrnd", 1, 0, ECX, 30, STATE_NONE},
    {"fsgsbase", 7, 0, EBX, 0, STATE_NONE},
    {"bmi", 7, 0, EBX, 3, STATE_NONE},
    {"avx2", 7, 0, EBX, 5, STATE_AVX},
    {"bmi2", 7, 0, EBX, 8, STATE_NONE},
    {"avx512f", 7, 0, EBX, 16, STATE_AVX512},
    {"avx512dq", 7, 0, EBX, 17, STATE_AVX512},
    {"rdseed", 7, 0, EBX, 18, STATE_NONE},
    {"adx", 7, 0, EBX, 19, STATE_NONE},
    {"avx512ifma", 7, 0, EBX, 21, STATE_AVX512},
    {"invpcid", 7, 0, EBX, 10, STATE_NONE},
    {"rtm", 7, 0, EBX, 11, STATE_NONE},
    {"clflushopt", 7, 0, EBX, 23, STATE_NONE},
    {"clwb", 7, 0, EBX, 24, STATE_NONE},
    {"avx512cd", 7, 0, EBX, 28, STATE_AVX512},
    {"sha", 7, 0, EBX, 29, STATE_NONE},
    {"avx512bw", 7, 0, EBX, 30, STATE_AVX512},
    {"avx512vl", 7, 0, EBX, 31, STATE_AVX512},
    {"avx512vbmi", 7, 0, ECX, 1, STATE_AVX512},
    {"pku", 7, 0, ECX, 4, STATE_NONE},
    {"waitpkg", 7, 0, ECX, 5, STATE_NONE},
    {"avx512vbmi2", 7, 0, ECX, 6, STATE_AVX512},
    {"shstk", 7, 0, ECX, 7, STATE_NONE},
    {"gfni", 7, 0, ECX, 8, STATE_NONE},
    {"vaes", 7, 0, ECX, 9, STATE_AVX},
    {"vpclmulqdq", 7, 0, ECX, 10, STATE_AVX},
    {"avx512vnni", 7, 0, ECX, 11, STATE_AVX512},
    {"avx512bitalg", 7, 0, ECX, 12, STATE_AVX512},
    {"avx512vpopcntdq", 7, 0, ECX, 14, STATE_AVX512},
    {"rdpid", 7, 0, ECX, 22, STATE_NONE},
    {"cldemote", 7, 0, ECX, 25, STATE_NONE},
    {"movdiri", 7, 0, ECX, 27, STATE_NONE},
    {"movdir64b", 7, 0, ECX, 28, STATE_NONE},
    {"enqcmd", 7, 0, ECX, 29, STATE_NONE},
    {"uintr", 7, 0, EDX, 5, STATE_NONE},
    {"avx512vp2intersect", 7, 0, EDX, 8, STATE_AVX512},
    {"serialize", 7, 0, EDX, 14, STATE_NONE},
    {"tsxldtrk", 7, 0, EDX, 16, STATE_NONE},
    {"pconfig", 7, 0, EDX, 18, STATE_NONE},
    {"amx-bf16", 7, 0, EDX, 22, STATE_AMX},
    {"avx512fp16", 7, 0, EDX, 23, STATE_AVX512},
    {"amx-tile", 7, 0, EDX, 24, STATE_AMX},
    {"amx-int8", 7, 0, EDX, 25, STATE_AMX},
    {"avxvnni", 7, 1, EAX, 4, STATE_AVX},
    {"avx512bf16", 7, 1, EAX, 5, STATE_AVX512},
    {"amx-fp16", 7, 1, EAX, 21, STATE_AMX},
    {"avxifma", 7, 1, EAX, 23, STATE_AVX},
    {"avxvnniint8", 7, 1, EDX, 4, STATE_AVX},
    {"avxneconvert", 7, 1, EDX, 5, STATE_AVX},
    {"avxvnniint16", 7, 1, EDX, 10, STATE_AVX},
    {"xsaveopt", 0xd, 1, EAX, 0, STATE_AVX},
    {"xsavec", 0xd, 1, EAX, 1, STATE_AVX},
    {"xsaves", 0xd, 1, EAX, 3, STATE_AVX},
    {"ptwrite", 0x14, 0, EBX, 4, STATE_NONE},
    {"sahf", 0x80000001, 0, ECX, 0, STATE_NONE},
    {"lzcnt", 0x80000001, 0, ECX, 5, STATE_NONE},
    {"sse4a", 0x80000001, 0, ECX, 6, STATE_NONE},
    {"prfchw", 0x80000001, 0, ECX, 8, STATE_NONE},
    {"xop", 0x80000001, 0, ECX, 11, STATE_AVX},
    {"fma4", 0x80000001, 0, ECX, 16, STATE_AVX},
    {"mwaitx", 0x80000001, 0, ECX, 29, STATE_NONE},
    {"64bit", 0x80000001, 0, EDX, 29, STATE_NONE},
    {"clzero", 0x80000008, 0, EBX, 0, STATE_NONE},
    {"rdpru", 0x80000008, 0, EBX, 4, STATE_NONE},
    {"wbnoinvd", 0x80000008, 0, EBX, 9, STATE_NONE},
};

static uint64_t read_xcr0(void) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const unsigned osxsave = 1u << 27;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & osxsave))
    return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool read_cpuid(unsigned leaf, unsigned subleaf, unsigned registers[4]) {
  return __get_cpuid_count(leaf, subleaf, &registers[EAX], &registers[EBX], &registers[ECX],
                           &registers[EDX]);
}

/* Asks the system for the state of AMX, which it gives to processes on request; from then on all
 * threads of the process have it (Linux, Documentation/arch/x86/xstate.rst). */
static bool may_use_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
  return false;
#endif
}

static bool is_supported(const feature *wanted) {
  unsigned registers[4] = {0};
  if (wanted->leaf == 7 && wanted->subleaf > 0) { /* its EAX counts its subleaves */
    if (!read_cpuid(7, 0, registers) || registers[EAX] < wanted->subleaf)
      return false;
  }
  if (!read_cpuid(wanted->leaf, wanted->subleaf, registers))
    return false;
  return (registers[wanted->reg] >> wanted->bit & 1u) &&
         (read_xcr0() & wanted->state) == wanted->state &&
         (wanted->state != STATE_AMX || may_use_tiles());
}

int braid_cpu_supports(const char *name) {
  for (size_t i = 0; i < sizeof features / sizeof *features; ++i)
    if (name && strcmp(features[i].name, name) == 0)
      return is_supported(&features[i]);
  return -1;
}
