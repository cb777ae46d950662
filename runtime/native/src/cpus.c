/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How many CPUs this process may use: those of its affinity, and no more than the CPU time that
 * its control groups grant (`cpu.max` of version 2, `cpu.cfs_quota_us` of version 1).
 */
#define _GNU_SOURCE
#include "internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static int64_t affine_cpus(void) {
  for (int most = CPU_SETSIZE; most <= 64 * CPU_SETSIZE; most *= 2) {
    cpu_set_t *set = CPU_ALLOC((size_t)most);
    if (set == NULL)
      break;
    size_t bytes = CPU_ALLOC_SIZE((size_t)most);
    bool known = sched_getaffinity(0, bytes, set) == 0;
    int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known)
      return count;
  }
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? online : 1;
}

/* Reads up to two numbers of a file, and returns their count; "max" is no number. */
static int read_numbers(const char *directory, const char *file, long long numbers[2]) {
  char path[PATH_BYTES + 64];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  FILE *stream = fopen(path, "re");
  if (stream == NULL)
    return 0;
  int count = fscanf(stream, "%lld %lld", &numbers[0], &numbers[1]);
  fclose(stream);
  return count > 0 ? count : 0;
}

/* CPUs that the control group of a directory grants, rounded up; INT64_MAX where it says nothing.
 */
static int64_t granted(const char *directory) {
  long long max[2], quota[2], period[2];
  if (read_numbers(directory, "cpu.max", max) != 2) {
    if (read_numbers(directory, "cpu.cfs_quota_us", quota) != 1 ||
        read_numbers(directory, "cpu.cfs_period_us", period) != 1)
      return INT64_MAX;
    max[0] = quota[0];
    max[1] = period[0];
  }
  return max[0] > 0 && max[1] > 0 ? max[0] / max[1] + (max[0] % max[1] != 0) : INT64_MAX;
}

/* The least that a control group and those around it grant. `root` is where they are mounted. */
static int64_t granted_within(const char *root, const char *group) {
  char path[PATH_BYTES];
  if ((size_t)snprintf(path, sizeof path, "%s%s", root, group) >= sizeof path)
    return INT64_MAX;
  int64_t least = INT64_MAX;
  for (;;) {
    int64_t here = granted(path);
    least = here < least ? here : least;
    char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) < strlen(root))
      return least;
    *slash = '\0';
  }
}

int64_t braid_cpus_of_groups(const char *self, const char *root) {
  FILE *stream = fopen(self, "re");
  if (stream == NULL)
    return INT64_MAX;
  int64_t least = INT64_MAX;
  char line[PATH_BYTES];
  while (fgets(line, sizeof line, stream) != NULL) {
    /* number:controllers:path; no controllers are version 2 */
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL)
      continue;
    *group++ = '\0';
    ++controllers;
    char mount[PATH_BYTES];
    if (*controllers == '\0')
      snprintf(mount, sizeof mount, "%s", root);
    else if (strcmp(controllers, "cpu") == 0 || strcmp(controllers, "cpu,cpuacct") == 0)
      snprintf(mount, sizeof mount, "%s/%s", root, controllers);
    else
      continue;
    int64_t here = granted_within(mount, group);
    least = here < least ? here : least;
  }
  fclose(stream);
  return least;
}

int64_t braid_available_cpus(void) {
  int64_t cpus = affine_cpus();
  int64_t granted_cpus = braid_cpus_of_groups("/proc/self/cgroup", "/sys/fs/cgroup");
  int64_t least = cpus < granted_cpus ? cpus : granted_cpus;
  return least > 0 ? least : 1;
}
