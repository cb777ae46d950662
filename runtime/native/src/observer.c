/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Functions that code with profile counters calls, and the attachment of traces and counters.
 */
#define _GNU_SOURCE
#include "observer.h"

#include "context.h"
#include "launch.h"
#include "phases.h"
#include "waiting.h"

uint64_t braid_clock(const braid_env *env) {
  if (env->observer->counters != NULL)
    braid_counters_begin(env->observer->counters);
  return braid_now();
}

uint64_t braid_record(const braid_env *env, int64_t counter, uint64_t begin) {
  uint64_t end = braid_now();
  env->counts[counter] += 1;
  env->times[counter] += end - begin;
  const struct braid_observer *observer = env->observer;
  if (observer->trace == NULL && observer->counters == NULL)
    return end;
  if (observer->counters != NULL)
    braid_counters_end(observer->counters, counter);
  if (observer->trace != NULL) {
    braid_trace_event event = {.kind = BRAID_TRACE_KERNEL, .index = counter, .begin = begin};
    event.end = end;
    braid_trace_append(observer->trace, env, &event);
  }
  return braid_now(); /* the next kernel does not begin before this is done */
}

/* ---- Parts of kernels, on the threads that run them ---- */

typedef struct traced_loop {
  const braid_env *env;
  braid_body body;
  void *ctx;
} traced_loop;

static void run_part(void *argument, int64_t begin, int64_t end) {
  const traced_loop *own = argument;
  braid_trace_event event = {.kind = BRAID_TRACE_PART, .index = -1, .begin = braid_now()};
  own->body(own->ctx, begin, end);
  event.end = braid_now();
  braid_trace_append(own->env->observer->trace, own->env, &event);
}

void braid_parallel_for_traced(const braid_env *env, braid_body body, void *ctx, int64_t n) {
  if (env->threads == 1) { /* the part would be the kernel */
    braid_parallel_for(env, body, ctx, n);
    return;
  }
  traced_loop own = {env, body, ctx};
  braid_parallel_for(env, run_part, &own, n);
}

/* ---- Attaching ---- */

/* Calls of an environment go by what its observer has. */
static void set_calls(braid_env *env) {
  env->parallel_for = env->observer->trace != NULL ? braid_parallel_for_traced : braid_parallel_for;
}

static void set_all_calls(braid_context_t *context, void *unused) {
  (void)unused;
  const braid_model_v2 *descriptor = context->model->descriptor;
  set_calls(&context->env);
  for (int64_t i = 0; context->launches != NULL && i < descriptor->device_count; ++i)
    set_calls(&context->launches->devices[i].env);
}

static bool is_of_another(const braid_model_t *model, const braid_context_t *context,
                          const char *what) {
  if (model == context->model)
    return false;
  braid_set_error("the %s belong%s to another model than the context", what,
                  what[0] == 't' ? "s" : "");
  return true;
}

int braid_context_set_trace(braid_context_t *context, braid_trace_t *trace) {
  if (braid_is_null(context, "context") ||
      (trace != NULL && is_of_another(braid_trace_model(trace), context, "trace")))
    return 1;
  context->observer.trace = trace;
  braid_context_each(context, set_all_calls, NULL);
  return 0;
}

int braid_context_set_counters(braid_context_t *context, braid_counters_t *counters) {
  if (braid_is_null(context, "context") ||
      (counters != NULL && is_of_another(braid_counters_model(counters), context, "counters")))
    return 1;
  context->observer.counters = counters;
  return 0;
}
