/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Observing runs: the time of each kernel, launch and stage, and hardware counters meanwhile.
 *
 * Runs, launches and stages are recorded of any model, kernels of one that was compiled with
 * profiling alone. A context without an observer pays nothing. Functions that return a pointer
 * return NULL on failure, those that return int nonzero; `braid_last_error` then says why.
 *
 *   braid_trace_t *trace = braid_trace_create(model, 1 << 20);
 *   braid_context_set_trace(context, trace);
 *   braid_context_run(context, inputs, outputs);
 *   braid_trace_write(trace, "run.json"); // opens in https://ui.perfetto.dev and chrome://tracing
 *   braid_context_set_trace(context, NULL);
 *   braid_trace_close(trace);
 */
#ifndef BRAID_TRACE_H
#define BRAID_TRACE_H

#include <braid/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Traces --------------------------------------------------------------------------------
 *
 * A trace belongs to one model. Several contexts and streams of the model may write to it at the
 * same time. It is read when none of them runs.
 */
typedef struct braid_trace braid_trace_t;

enum braid_trace_kind {
  BRAID_TRACE_RUN = 0,    /* one run of the model, or of one of its phases */
  BRAID_TRACE_KERNEL = 1, /* `index` is the profile counter */
  BRAID_TRACE_PART = 2,   /* what one thread did of a kernel; `index` as of the kernel, -1 where
                           * that is not known */
  BRAID_TRACE_LAUNCH = 3, /* `index` is the function; `value` the device's own nanoseconds */
  BRAID_TRACE_STAGE = 4,  /* `index` is the stage of a stream; `value` the number of the request */
};

/* Times are nanoseconds of the system's monotonic clock. 48 bytes. */
typedef struct braid_trace_event {
  int64_t kind; /* a braid_trace_kind */
  int64_t index;
  int64_t value;
  int64_t thread; /* the system's number of it */
  uint64_t begin;
  uint64_t end;
} braid_trace_event;

/* Creates a trace that keeps the first `capacity` events. It holds the model. */
BRAID_API braid_trace_t *braid_trace_create(braid_model_t *model, int64_t capacity);

/* Lets the next runs of a context be recorded; NULL ends that. The trace outlives this. */
BRAID_API int braid_context_set_trace(braid_context_t *context, braid_trace_t *trace);

/* The same of a stream, while none of its requests is under way. */
BRAID_API int braid_stream_set_trace(braid_stream_t *stream, braid_trace_t *trace);

/* How many events it keeps, in the order in which they ended on their threads, and how many it had
 * no room for. */
BRAID_API int64_t braid_trace_count(const braid_trace_t *trace);
BRAID_API int64_t braid_trace_dropped(const braid_trace_t *trace);

/* Event `index` of it; NULL for a wrong index. */
BRAID_API const braid_trace_event *braid_trace_get(braid_trace_t *trace, int64_t index);

/* Forgets all events. */
BRAID_API void braid_trace_reset(braid_trace_t *trace);

/* Writes Chrome's trace events (JSON), which Perfetto reads too. */
BRAID_API int braid_trace_write(braid_trace_t *trace, const char *path);

/* NULL is allowed. */
BRAID_API void braid_trace_close(braid_trace_t *trace);

/* ---- Hardware counters ---------------------------------------------------------------------
 *
 * What `perf_event_open` counts while kernels of a model with profile counters run, in all threads
 * of the process. Reading takes microseconds at the start and the end of a kernel, so times of such
 * runs are not comparable with others. What a machine does not count has a reason and no values.
 */
typedef struct braid_counters braid_counters_t;

/* How many counters there are by name, and their names: `cycles`, `instructions`, …; NULL for a
 * wrong index. */
BRAID_API int64_t braid_counter_count(void);
BRAID_API const char *braid_counter_name(int64_t index);

/* Opens all counters for the threads that the process has, and those that these create: let the
 * model run once before. It holds the model. */
BRAID_API braid_counters_t *braid_counters_create(braid_model_t *model);

/* Lets the next runs of one context be counted; NULL ends that. */
BRAID_API int braid_context_set_counters(braid_context_t *context, braid_counters_t *counters);

/* The values of counter `index` under each profile counter of the model, `counter_count` numbers.
 * NULL where it never counted: `braid_counters_reason` then says why. */
BRAID_API const double *braid_counters_values(const braid_counters_t *counters, int64_t index);
BRAID_API const char *braid_counters_reason(const braid_counters_t *counters, int64_t index);

/* NULL is allowed. */
BRAID_API void braid_counters_close(braid_counters_t *counters);

#ifdef __cplusplus
}
#endif

#endif /* BRAID_TRACE_H */
