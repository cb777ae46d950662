/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Linux tells through the auxiliary vector what the CPU can do (arch/arm64 elf_hwcaps). Names:
 * LLVM's.
 */
#include "internal.h"

#include <string.h>
#include <sys/auxv.h>

typedef struct feature {
  const char *name;
  unsigned long vector; /* AT_HWCAP or AT_HWCAP2 */
  unsigned bit;
} feature;

static const feature features[] = {
    {"fp-armv8", AT_HWCAP, 0},  {"neon", AT_HWCAP, 1},   {"aes", AT_HWCAP, 3},
    {"sha2", AT_HWCAP, 6},      {"crc", AT_HWCAP, 7},    {"lse", AT_HWCAP, 8},
    {"fullfp16", AT_HWCAP, 10}, {"rdm", AT_HWCAP, 12},   {"rcpc", AT_HWCAP, 15},
    {"dotprod", AT_HWCAP, 20},  {"sve", AT_HWCAP, 22},   {"sve2", AT_HWCAP2, 1},
    {"i8mm", AT_HWCAP2, 13},    {"bf16", AT_HWCAP2, 14}, {"sme", AT_HWCAP2, 23},
};

int braid_cpu_supports(const char *name) {
  for (size_t i = 0; i < sizeof features / sizeof *features; ++i)
    if (name && strcmp(features[i].name, name) == 0)
      return (int)(getauxval(features[i].vector) >> features[i].bit & 1u);
  return -1;
}
