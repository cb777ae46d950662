/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The observer of a context's runs. A context has one observer, which all its environments refer
 * to: those of its own code, of devices, and of phases.
 */
#ifndef BRAID_OBSERVER_H
#define BRAID_OBSERVER_H

#include "braid/trace.h"
#include "internal.h"

struct braid_observer {
  braid_trace_t *trace;       /* NULL where nothing is recorded */
  braid_counters_t *counters; /* NULL where nothing is counted */
};

/* The `clock` and the `record` of braid_env. */
uint64_t braid_clock(const braid_env *env);
uint64_t braid_record(const braid_env *env, int64_t counter, uint64_t begin);

/* The `parallel_for` of braid_env while runs are traced. */
void braid_parallel_for_traced(const braid_env *env, braid_body body, void *ctx, int64_t n);

/* Appends an event; `trace` may be NULL. It ends now, on the calling thread. */
void braid_trace_end(braid_trace_t *trace, int64_t kind, int64_t index, int64_t value,
                     uint64_t begin);

/* Appends an event of the calling thread. `owner` is the environment that kernels and their parts
 * belong to. */
void braid_trace_append(braid_trace_t *trace, const braid_env *owner,
                        const braid_trace_event *event);

/* Reads the counters of the calling thread's next kernel. */
void braid_counters_begin(const braid_counters_t *counters);

/* Reads them again, and adds what they counted since the thread read them last to `counter`. */
void braid_counters_end(braid_counters_t *counters, int64_t counter);

const braid_model_t *braid_trace_model(const braid_trace_t *trace);
const braid_model_t *braid_counters_model(const braid_counters_t *counters);

/* When an event began that may be recorded: the clock, and 0 where nothing is recorded. */
uint64_t braid_trace_begin(const braid_trace_t *trace);

#endif
