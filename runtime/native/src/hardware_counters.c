/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counters of the hardware and of the system, by perf_event_open (see perf_event_open(2)): one
 * event for each counter and thread, whose sums are read around each kernel. An event that shares
 * a counter of the machine with others counts for a part of the time alone, and is scaled.
 */
#define _GNU_SOURCE
#include "observer.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNTERS = 5, MOST_THREADS = 1024, REASON = 160 };

typedef struct described_counter {
  const char *name;
  uint32_t type;
  uint64_t config;
} described_counter;

static const described_counter described[COUNTERS] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"task_clock_ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page_faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};

/* The fields that the system reports of an event, in its order. */
typedef struct reading {
  uint64_t value;
  uint64_t enabled;
  uint64_t running; /* of the time that it was enabled, how long it counted */
} reading;

typedef struct counter {
  int events[MOST_THREADS]; /* descriptors, one for each thread */
  int64_t event_count;
  double *values; /* under each profile counter */
  bool counted;
  char reason[REASON];
} counter;

struct braid_counters {
  braid_model_t *model;
  counter all[COUNTERS];
};

int64_t braid_counter_count(void) { return COUNTERS; }

const char *braid_counter_name(int64_t index) {
  return index >= 0 && index < COUNTERS ? described[index].name : NULL;
}

/* ---- Opening ---- */

static void say_why(char *text, int error) {
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
    snprintf(text, REASON, "this machine does not count it");
  else if (error == EACCES || error == EPERM)
    snprintf(text, REASON,
             "the system does not allow it: see /proc/sys/kernel/perf_event_paranoid");
  else
    snprintf(text, REASON, "perf_event_open: %s", strerror(error));
}

/* Opens an event of one thread and those that it will create; returns false, with the reason, on
 * failure.
 */
static bool open_event(counter *own, const described_counter *what, pid_t thread) {
  struct perf_event_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.size = sizeof attributes;
  attributes.type = what->type;
  attributes.config = what->config;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1; /* what a process may see of itself by default */
  attributes.exclude_hv = 1;
  int event = (int)syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (event < 0) {
    say_why(own->reason, errno);
    return false;
  }
  own->events[own->event_count++] = event;
  return true;
}

static void close_events(counter *own) {
  for (int64_t i = 0; i < own->event_count; ++i)
    close(own->events[i]);
  own->event_count = 0;
}

/* Counts in all threads that there are, or in none. A thread that has ended meanwhile is left out.
 */
static void open_counter(counter *own, const described_counter *what, DIR *tasks) {
  rewinddir(tasks);
  for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
    pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
    if (thread <= 0 || own->event_count == MOST_THREADS)
      continue;
    if (!open_event(own, what, thread) && errno != ESRCH) {
      close_events(own);
      return;
    }
  }
}

braid_counters_t *braid_counters_create(braid_model_t *model) {
  if (model == NULL) {
    braid_set_error("the model is NULL");
    return NULL;
  }
  int64_t count = model->descriptor->counter_count;
  if (count == 0) {
    braid_set_error("the model has no profile counters: compile it with profiling");
    return NULL;
  }
  braid_counters_t *counters = calloc(1, sizeof *counters);
  DIR *tasks = opendir("/proc/self/task");
  bool made = counters != NULL && tasks != NULL;
  for (int64_t i = 0; made && i < COUNTERS; ++i) {
    counter *own = &counters->all[i];
    snprintf(own->reason, REASON, "no kernel has run with it");
    own->values = calloc((size_t)count, sizeof(double));
    made = own->values != NULL;
    if (made)
      open_counter(own, &described[i], tasks);
  }
  if (tasks != NULL)
    closedir(tasks);
  if (made) {
    braid_model_retain(model);
    counters->model = model;
    return counters;
  }
  braid_set_error(counters != NULL && tasks == NULL ? "cannot list the threads of the process"
                                                    : "out of memory for counters");
  braid_counters_close(counters);
  return NULL;
}

const braid_model_t *braid_counters_model(const braid_counters_t *counters) {
  return counters->model;
}

/* ---- Counting ---- */

/* The values that the thread read last. */
static _Thread_local reading last[COUNTERS];

/* The sums over all threads. */
static reading read_counter(const counter *own) {
  reading sum = {0, 0, 0};
  for (int64_t i = 0; i < own->event_count; ++i) {
    reading one;
    if (read(own->events[i], &one, sizeof one) != (ssize_t)sizeof one)
      continue;
    sum.value += one.value;
    sum.enabled += one.enabled;
    sum.running += one.running;
  }
  return sum;
}

void braid_counters_begin(const braid_counters_t *counters) {
  for (int64_t i = 0; i < COUNTERS; ++i)
    last[i] = read_counter(&counters->all[i]);
}

void braid_counters_end(braid_counters_t *counters, int64_t number) {
  for (int64_t i = 0; i < COUNTERS; ++i) {
    counter *own = &counters->all[i];
    if (own->event_count == 0)
      continue;
    reading now = read_counter(own);
    uint64_t running = now.running - last[i].running, enabled = now.enabled - last[i].enabled;
    if (running > 0) {
      own->values[number] +=
          (double)(now.value - last[i].value) * ((double)enabled / (double)running);
      own->counted = true;
    }
  }
  braid_counters_begin(counters); /* of the next kernel, without what reading took */
}

/* ---- Reading ---- */

static const counter *counter_of(const braid_counters_t *counters, int64_t index) {
  if (counters != NULL && index >= 0 && index < COUNTERS)
    return &counters->all[index];
  braid_set_error("there are %d counters, there is no counter %lld", COUNTERS, (long long)index);
  return NULL;
}

const double *braid_counters_values(const braid_counters_t *counters, int64_t index) {
  const counter *own = counter_of(counters, index);
  return own != NULL && own->counted ? own->values : NULL;
}

const char *braid_counters_reason(const braid_counters_t *counters, int64_t index) {
  const counter *own = counter_of(counters, index);
  return own != NULL && !own->counted ? own->reason : NULL;
}

void braid_counters_close(braid_counters_t *counters) {
  if (counters == NULL)
    return;
  for (int64_t i = 0; i < COUNTERS; ++i) {
    close_events(&counters->all[i]);
    free(counters->all[i].values);
  }
  braid_model_close(counters->model);
  free(counters);
}
