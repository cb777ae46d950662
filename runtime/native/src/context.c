/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "context.h"
#include "devices.h"
#include "phases.h"
#include "size_counts.h"
#include "specializations.h"
#include "waiting.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds between two questions whether the run is to end. */
#define LOOK_NS 50000000u

static uint64_t now_ns(void) { return braid_now(); }

static void record_failure(const braid_env *env, const char *message) {
  braid_context_t *context = (braid_context_t *)(uintptr_t)env;
  snprintf(context->failure, sizeof context->failure, "%s", message);
  atomic_store_explicit(&context->watch.stopped, 1, memory_order_relaxed); /* ends loops */
}

static uint64_t coarse_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int32_t is_stopped(const braid_env *env) {
  struct braid_watch *watch = env->watch;
  if (atomic_load_explicit(&watch->stopped, memory_order_relaxed))
    return 1;
  if (watch->poll == NULL || env != watch->owner || coarse_now() < watch->next)
    return 0;
  int stops = watch->poll() != 0;
  atomic_store_explicit(&watch->stopped, stops, memory_order_relaxed);
  watch->next = coarse_now() + LOOK_NS;
  return stops;
}

void braid_context_set_poll(braid_context_t *context, int (*poll)(void)) {
  if (context != NULL)
    context->watch.poll = poll;
}

/* The arena that the next run needs. */
static int64_t needed_arena(const braid_context_t *context) {
  return context->plan != NULL ? context->plan->arena_bytes
                               : context->model->descriptor->arena_bytes;
}

static bool allocate_arena(braid_context_t *context, int64_t bytes) {
  size_t align = (size_t)braid_arena_align(context->model->descriptor);
  if (posix_memalign(&context->arena, align, bytes > 0 ? (size_t)bytes : 1) != 0)
    context->arena = NULL;
  context->arena_bytes = context->arena != NULL ? bytes : 0;
  return context->arena != NULL;
}

/* Lets the arena be as large as the next run needs; false and the error set where there is no
 * memory. One that grows does so by half at least, so that a run for each size does not mean an
 * allocation for each. */
static bool reserve_arena(braid_context_t *context) {
  int64_t needed = needed_arena(context), ample = context->arena_bytes + context->arena_bytes / 2;
  if (context->arena != NULL && context->arena_bytes >= needed)
    return true;
  free(context->arena);
  if ((ample > needed && allocate_arena(context, ample)) || allocate_arena(context, needed))
    return true;
  const char *format = "out of memory: the model's arena takes %lld bytes";
  if (context->plan != NULL)
    return braid_fail_at(context->model->descriptor, context->sizes, format, (long long)needed);
  braid_set_error(format, (long long)needed);
  return false;
}

static bool allocate_buffers(braid_context_t *context, const braid_model_v2 *descriptor) {
  size_t counters = (size_t)descriptor->counter_count;
  context->input_shapes = braid_create_shapes(descriptor->inputs, descriptor->input_count);
  context->output_shapes = braid_create_shapes(descriptor->outputs, descriptor->output_count);
  context->sizes = calloc((size_t)descriptor->dim_count + 1, sizeof(int64_t));
  size_t values = descriptor->open != NULL ? (size_t)descriptor->open->value_count : 0;
  context->values = malloc((values + 1) * sizeof(int64_t));
  for (size_t i = 0; context->values != NULL && i < values; ++i)
    context->values[i] = -1;
  context->env.counts = calloc(counters + 1, sizeof(uint64_t));
  context->env.times = calloc(counters + 1, sizeof(uint64_t));
  bool made = context->input_shapes != NULL && context->output_shapes != NULL &&
              context->sizes != NULL && context->values != NULL && context->env.counts != NULL &&
              context->env.times != NULL;
  if (made && counters > 0 && descriptor->open != NULL && !context->model->is_part) {
    context->size_counts = braid_size_counts_create(descriptor->dim_count);
    made = context->size_counts != NULL;
  }
  if (!made)
    braid_set_error("out of memory for a context");
  return made && (descriptor->open != NULL || descriptor->phases != NULL || reserve_arena(context));
}

braid_context_t *braid_context_create(braid_model_t *model, int64_t threads) {
  if (model == NULL) {
    braid_set_error("the model is NULL");
    return NULL;
  }
  if (threads < 0 || threads > INT_MAX) {
    braid_set_error("cannot run on %lld threads", (long long)threads);
    return NULL;
  }
  braid_context_t *context = calloc(1, sizeof *context);
  if (context == NULL) {
    braid_set_error("out of memory");
    return NULL;
  }
  braid_model_retain(model);
  context->model = model;
  if (!allocate_buffers(context, model->descriptor)) {
    braid_context_close(context);
    return NULL;
  }
  context->env.threads = threads > 0 ? threads : braid_available_cpus();
  context->env.parallel_for = braid_parallel_for;
  context->env.now = now_ns;
  context->env.fail = record_failure;
  context->env.input_shapes = (const int64_t *const *)context->input_shapes;
  context->env.output_shapes = context->output_shapes;
  context->env.post = braid_post;
  context->env.wait = braid_wait;
  context->env.run_inter_op = braid_run_inter_op;
  context->env.is_stopped = is_stopped;
  context->env.expanded = model->expanded;
  context->watch.owner = &context->env;
  context->env.watch = &context->watch;
  context->env.clock = braid_clock;
  context->env.record = braid_record;
  context->env.observer = &context->observer;
  if (model->descriptor->device_count > 0 && model->descriptor->phases == NULL &&
      (context->launches = braid_launches_create(model, &context->env)) == NULL) {
    braid_context_close(context);
    return NULL;
  }
  if (model->descriptor->phases != NULL &&
      (context->phases = braid_phases_create(model, &context->env)) == NULL) {
    braid_context_close(context);
    return NULL;
  }
  if (model->descriptor->open != NULL &&
      (context->specializations = braid_specializations_create(model)) == NULL) {
    braid_context_close(context);
    return NULL;
  }
  return context;
}

braid_context_t *braid_context_create_part(braid_model_t *part, const braid_env *env) {
  braid_context_t *context = braid_context_create(part, env->threads);
  if (context == NULL)
    return NULL;
  free(context->env.counts);
  free(context->env.times);
  context->env.counts = env->counts;
  context->env.times = env->times;
  context->env.observer = env->observer;
  context->env.parallel_for = env->parallel_for;
  if (context->launches != NULL)
    braid_launches_observe(context->launches, env->observer);
  return context;
}

void braid_context_close_part(braid_context_t *context) {
  if (context == NULL)
    return;
  context->env.counts = NULL; /* they belong to the whole model's context */
  context->env.times = NULL;
  braid_context_close(context);
}

void braid_context_each(braid_context_t *context, void (*visit)(braid_context_t *, void *),
                        void *argument) {
  if (context == NULL)
    return;
  visit(context, argument);
  const braid_model_v2 *descriptor = context->model->descriptor;
  for (int64_t i = 0; context->phases != NULL && i < descriptor->phases->count; ++i)
    braid_context_each(braid_phases_context(context->phases, i), visit, argument);
  int64_t count = context->specializations != NULL ? braid_specialization_count(descriptor) : 0;
  for (int64_t i = 0; i < count; ++i)
    braid_context_each(braid_specializations_context(context->specializations, i), visit, argument);
}

/* Sets the error and returns true if there is none. */
bool braid_is_null(const void *pointer, const char *what) {
  if (pointer == NULL)
    braid_set_error("the %s is NULL", what);
  return pointer == NULL;
}

static int report(const braid_context_t *context, int32_t status) {
  if (status == 0 && !context->watch.stopped)
    return 0;
  if (context->failure[0] != '\0')
    braid_set_error("%s", context->failure);
  else if (context->watch.stopped)
    braid_set_error("the run was ended while a loop went on");
  else
    braid_set_error("the model failed with status %d", (int)status);
  return 1;
}

/* Whether every tensor that has elements has a buffer; `shapes` are NULL for upper bounds. */
static bool check_buffers(const char *what, int64_t count, const braid_tensor_v2 *tensors,
                          int64_t *const *shapes, void *const *buffers) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t *shape = shapes != NULL ? shapes[i] : tensors[i].bound;
    if ((buffers == NULL || buffers[i] == NULL) && braid_tensor_bytes(&tensors[i], shape) > 0) {
      braid_set_error("the buffer for %s '%s' is NULL", what, tensors[i].name);
      return false;
    }
  }
  return true;
}

bool braid_check_ports(const braid_model_v2 *descriptor, void *const *inputs,
                       void *const *outputs) {
  return check_buffers("input", descriptor->input_count, descriptor->inputs, NULL, inputs) &&
         check_buffers("output", descriptor->output_count, descriptor->outputs, NULL, outputs);
}

braid_launches *braid_launches_of(braid_context_t *context) { return context->launches; }

braid_launches *braid_context_launches(const braid_env *env) {
  return ((braid_context_t *)(uintptr_t)env)->launches;
}

/* One call of the code of a model. */
typedef struct call {
  braid_context_t *context;
  const braid_variant_v2 *variant; /* NULL for a model without variants */
  void *const *inputs;
  void *const *outputs;
} call;

static int32_t run_code(void *argument) {
  const call *own = argument;
  braid_context_t *context = own->context;
  const braid_model_v2 *descriptor = context->model->descriptor;
  const void *weights = context->model->weights.data;
  if (own->variant == NULL)
    return descriptor->run(&context->env, own->inputs, own->outputs, weights, context->arena);
  braid_padded_run run = {descriptor,   own->variant, &context->env, own->inputs,
                          own->outputs, weights,      context->arena};
  return braid_run_padded(&run, &context->staging);
}

/* A call of a function of the model. */
typedef struct function_call {
  braid_launches *launches;
  int64_t number;
  void *const *buffers;
} function_call;

static int32_t run_function(void *argument) {
  const function_call *own = argument;
  return braid_launches_here(own->launches, own->number, own->buffers);
}

bool braid_context_run_function(braid_context_t *context, int64_t number, void *const *buffers,
                                char *error, size_t size) {
  function_call own = {context->launches, number, buffers};
  context->failure[0] = '\0';
  context->watch.stopped = 0;
  int32_t status = braid_launches_run(context->launches, run_function, &own);
  if (status != 0 && context->failure[0] != '\0')
    snprintf(error, size, "%s", context->failure);
  else if (status != 0)
    snprintf(error, size, "failed with status %d", (int)status);
  return status == 0;
}

/* Runs a model whose data decide sizes. */
static bool run_phases(braid_context_t *context, void *const *inputs, void *const *outputs) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  if (outputs != NULL) {
    braid_set_error("data decide sizes of the model: outputs is NULL, and braid_context_output has "
                    "the results");
    return false;
  }
  return braid_has_sizes(context) &&
         check_buffers("input", descriptor->input_count, descriptor->inputs, context->input_shapes,
                       inputs) &&
         braid_phases_run(context->phases, inputs, context->env.input_shapes, context->watch.poll);
}

int braid_context_run(braid_context_t *context, void *const *inputs, void *const *outputs) {
  if (braid_is_null(context, "context") || !braid_weights_are_intact(context->model))
    return 1;
  if (context->phases != NULL)
    return run_phases(context, inputs, outputs) ? 0 : 1;
  const braid_model_v2 *descriptor = context->model->descriptor;
  const braid_variant_v2 *variant = NULL;
  context->failure[0] = '\0';
  if (!braid_read_values(context, inputs) || !braid_context_set_output_shapes(context, &variant))
    return 1;
  if (context->size_counts != NULL)
    braid_size_counts_add(context->size_counts, context->sizes);
  if (context->chosen != NULL) {
    braid_context_set_poll(context->chosen, context->watch.poll);
    context->chosen->env.parallel_for = context->env.parallel_for;
    return braid_context_run(context->chosen, inputs, outputs);
  }
  if (!check_buffers("input", descriptor->input_count, descriptor->inputs, context->input_shapes,
                     inputs) ||
      !check_buffers("output", descriptor->output_count, descriptor->outputs,
                     variant != NULL || descriptor->open != NULL ? context->output_shapes : NULL,
                     outputs) ||
      !reserve_arena(context))
    return 1;
  call own = {context, variant, inputs, outputs};
  context->watch.stopped = 0;
  if (context->watch.poll != NULL)
    context->watch.next = coarse_now() + LOOK_NS;
  uint64_t began = braid_trace_begin(context->env.observer->trace);
  int32_t status = context->launches == NULL
                       ? run_code(&own)
                       : braid_launches_run(context->launches, run_code, &own);
  braid_trace_end(context->env.observer->trace, BRAID_TRACE_RUN, 0, 0, began);
  return report(context, status);
}

const uint64_t *braid_context_profile_counts(const braid_context_t *context) {
  return braid_is_null(context, "context") ? NULL : context->env.counts;
}

const uint64_t *braid_context_profile_times(const braid_context_t *context) {
  return braid_is_null(context, "context") ? NULL : context->env.times;
}

int64_t braid_context_profile_sizes(const braid_context_t *context, int64_t capacity,
                                    int64_t *sizes, uint64_t *counts, uint64_t *errors) {
  if (braid_is_null(context, "context"))
    return -1;
  if (context->size_counts == NULL || capacity <= 0)
    return 0;
  return braid_size_counts_read(context->size_counts, capacity, sizes, counts, errors);
}

static void reset_launches(braid_context_t *context, void *unused) {
  (void)unused;
  if (context->launches != NULL)
    braid_launches_reset(context->launches);
}

void braid_context_profile_reset(braid_context_t *context) {
  if (context == NULL)
    return;
  size_t bytes = (size_t)context->model->descriptor->counter_count * sizeof(uint64_t);
  memset(context->env.counts, 0, bytes);
  memset(context->env.times, 0, bytes);
  braid_size_counts_reset(context->size_counts);
  braid_context_each(context, reset_launches, NULL);
}

typedef struct device_time {
  int64_t device;
  int64_t nanoseconds;
} device_time;

static void add_time(braid_context_t *context, void *argument) {
  device_time *own = argument;
  if (context->launches != NULL)
    own->nanoseconds += braid_launches_time(context->launches, own->device);
}

int64_t braid_context_device_time(const braid_context_t *context, int64_t device) {
  if (braid_is_null(context, "context"))
    return -1;
  int64_t count = context->model->descriptor->device_count;
  if (device < 0 || device >= count) {
    braid_set_error("the model has %lld devices, there is no device %lld", (long long)count,
                    (long long)device);
    return -1;
  }
  device_time found = {device, 0};
  braid_context_each((braid_context_t *)(uintptr_t)context, add_time, &found);
  return found.nanoseconds;
}

/* Frees what an allocator may keep for later: its pages go back first. */
static void give_back(void *memory, size_t bytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
            end = ((uintptr_t)memory + bytes) & ~(page - 1);
  uintptr_t first = ((uintptr_t)memory + page - 1) & ~(page - 1);
  if (memory != NULL && first < end)
    madvise((void *)first, end - first, MADV_DONTNEED);
  free(memory);
}

void braid_context_trim(braid_context_t *context) {
  if (context == NULL)
    return;
  if (context->phases != NULL)
    braid_phases_trim(context->phases);
  if (context->specializations != NULL)
    braid_specializations_trim(context->specializations);
  give_back(context->arena, (size_t)context->arena_bytes);
  context->arena = NULL;
  context->arena_bytes = 0;
  give_back(context->staging.memory, context->staging.bytes);
  context->staging = (braid_staging){NULL, 0};
}

void braid_context_close(braid_context_t *context) {
  if (context == NULL)
    return;
  braid_launches_close(context->launches);
  braid_phases_close(context->phases);
  braid_specializations_close(context->specializations);
  braid_size_counts_free(context->size_counts);
  braid_plan_release(context->plan);
  free(context->arena);
  free(context->input_shapes);
  free(context->output_shapes);
  free(context->sizes);
  free(context->values);
  free(context->staging.memory);
  free(context->env.counts);
  free(context->env.times);
  braid_model_close(context->model);
  free(context);
}
