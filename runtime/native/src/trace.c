/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Traces: a list of events of fixed size, to which threads append without a lock.
 */
#define _GNU_SOURCE
#include "trace.h"
#include "waiting.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bytes that a trace may take; as many events need a file of gigabytes. */
enum { MOST_EVENTS = 1 << 26 };

braid_trace_t *braid_trace_create(braid_model_t *model, int64_t capacity) {
  if (model == NULL || capacity < 1 || capacity > MOST_EVENTS) {
    if (model == NULL)
      braid_set_error("the model is NULL");
    else
      braid_set_error("a trace keeps from 1 to %d events, not %lld", MOST_EVENTS,
                      (long long)capacity);
    return NULL;
  }
  braid_trace_t *trace = calloc(1, sizeof *trace);
  braid_traced *events = calloc((size_t)capacity, sizeof *events);
  if (trace == NULL || events == NULL) {
    free(trace);
    free(events);
    braid_set_error("out of memory for a trace of %lld events", (long long)capacity);
    return NULL;
  }
  braid_model_retain(model);
  trace->model = model;
  trace->capacity = capacity;
  trace->events = events;
  return trace;
}

const braid_model_t *braid_trace_model(const braid_trace_t *trace) { return trace->model; }

static int64_t own_thread(void) {
  static _Thread_local int64_t number;
  static _Thread_local pid_t process; /* a forked child's thread has another number */
  if (process != getpid()) {
    process = getpid();
    number = (int64_t)syscall(SYS_gettid);
  }
  return number;
}

void braid_trace_append(braid_trace_t *trace, const braid_env *owner,
                        const braid_trace_event *event) {
  int64_t place = atomic_fetch_add_explicit(&trace->added, 1, memory_order_relaxed);
  if (place >= trace->capacity)
    return;
  trace->events[place] = (braid_traced){*event, owner};
  trace->events[place].event.thread = own_thread();
}

uint64_t braid_trace_begin(const braid_trace_t *trace) { return trace != NULL ? braid_now() : 0; }

void braid_trace_end(braid_trace_t *trace, int64_t kind, int64_t index, int64_t value,
                     uint64_t begin) {
  if (trace == NULL)
    return;
  braid_trace_event event = {
      .kind = kind, .index = index, .value = value, .begin = begin, .end = braid_now()};
  braid_trace_append(trace, NULL, &event);
}

int64_t braid_trace_count(const braid_trace_t *trace) {
  if (trace == NULL)
    return 0;
  int64_t added = atomic_load_explicit(&trace->added, memory_order_acquire);
  return added < trace->capacity ? added : trace->capacity;
}

int64_t braid_trace_dropped(const braid_trace_t *trace) {
  return trace == NULL ? 0 : atomic_load(&trace->added) - braid_trace_count(trace);
}

/* ---- Names of parts ---- */

/* The kernel of an environment that ended next, seen from the end. */
typedef struct next_kernel {
  const braid_env *owner;
  int64_t index;
} next_kernel;

/* The entry of one of the few owners: contexts and their devices. NULL without room. */
static next_kernel *entry_of(next_kernel **list, size_t *count, const braid_env *owner) {
  for (size_t i = 0; i < *count; ++i)
    if ((*list)[i].owner == owner)
      return &(*list)[i];
  next_kernel *longer = realloc(*list, (*count + 1) * sizeof **list);
  if (longer == NULL)
    return NULL;
  *list = longer;
  longer[*count] = (next_kernel){owner, -1};
  return &longer[(*count)++];
}

/* A part is appended before its kernel, the next event with the same owner. */
static void name_parts(braid_trace_t *trace, int64_t count) {
  next_kernel *list = NULL;
  size_t owners = 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    braid_traced *own = &trace->events[i];
    if (own->event.kind != BRAID_TRACE_KERNEL && own->event.kind != BRAID_TRACE_PART)
      continue;
    next_kernel *entry = entry_of(&list, &owners, own->owner);
    if (entry != NULL && own->event.kind == BRAID_TRACE_KERNEL)
      entry->index = own->event.index;
    else if (entry != NULL)
      own->event.index = entry->index;
  }
  free(list);
  trace->named = count;
}

const braid_trace_event *braid_trace_get(braid_trace_t *trace, int64_t index) {
  int64_t count = braid_trace_count(trace);
  if (index < 0 || index >= count) {
    braid_set_error("the trace has %lld events, there is no event %lld", (long long)count,
                    (long long)index);
    return NULL;
  }
  if (trace->named != count)
    name_parts(trace, count);
  return &trace->events[index].event;
}

void braid_trace_reset(braid_trace_t *trace) {
  if (trace == NULL)
    return;
  atomic_store(&trace->added, 0);
  trace->named = 0;
}

void braid_trace_close(braid_trace_t *trace) {
  if (trace == NULL)
    return;
  braid_model_close(trace->model);
  free(trace->events);
  free(trace);
}
