/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Prints how many CPUs the affinity and the control groups grant; the latter of the file and the
 * mount that the arguments name.
 */
#include "internal.h"

#include <stdio.h>

int main(int count, char **arguments) {
  if (count == 3)
    printf("%lld\n", (long long)braid_cpus_of_groups(arguments[1], arguments[2]));
  else
    printf("%lld\n", (long long)braid_available_cpus());
  return 0;
}
