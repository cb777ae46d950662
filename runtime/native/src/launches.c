/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The launches of a context: `submit` and `finish` of braid_env.
 *
 * A run that fails waits for all that is under way, since that writes to the arena and to the
 * outputs, and leaves the code by longjmp: code holds nothing but its stack.
 */
#define _POSIX_C_SOURCE 200809L
#include "devices.h"
#include "float_mode.h"
#include "launch.h"
#include "observer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 64 };

static void record_failure(const braid_env *env, const char *message) {
  device_state *state = (device_state *)(uintptr_t)env;
  snprintf(state->failure, sizeof state->failure, "%s", message);
}

/* ---- Failing ---- */

/* Waits for all that is under way. */
static void drain(braid_launches *launches) {
  for (int64_t i = 0; i < launches->count; ++i) {
    launch *one = launches->all[i];
    if (!one->free && !one->ended)
      one->submission.plugin->wait(one->submission.device, one->submission.ticket);
  }
  for (int64_t i = 0; i < launches->count; ++i) {
    launch *one = launches->all[i];
    if (!one->free)
      braid_launch_end(one);
    one->dependents = 0;
    one->free = true;
  }
}

static void fail(braid_launches *launches, const char *message) {
  launches->env->fail(launches->env, message);
  drain(launches);
  longjmp(launches->failed, 1);
}

/* ---- What compiled code calls ---- */

/* Runs the host's code of a function, on any thread: one at a time for a context and device. */
static void compute(braid_submission *submission) {
  launch *own = (launch *)submission;
  const braid_model_v2 *model = own->launches->model->descriptor;
  const braid_function_v1 *function = &model->functions[submission->function];
  const braid_loaded_device *device = &own->launches->model->devices[function->device];
  device_state *state = (device_state *)(uintptr_t)submission->env;
  state->failure[0] = '\0';
  braid_set_float_mode(own->float_mode);
  submission->status = function->run(submission->env, submission->inputs, submission->outputs,
                                     device->described.weights, submission->arena);
  if (submission->status == 0)
    return;
  const char *name = model->devices[function->device].name;
  if (state->failure[0] != '\0')
    snprintf(submission->error, sizeof submission->error, "'@%s' on '%s': %.160s", function->name,
             name, state->failure);
  else
    snprintf(submission->error, sizeof submission->error, "'@%s' on '%s' failed with status %d",
             function->name, name, (int)submission->status);
}

static void finish(const braid_env *env, int64_t ticket);

int32_t braid_launches_here(braid_launches *launches, int64_t number, void *const *buffers) {
  const braid_function_v1 *function = &launches->model->descriptor->functions[number];
  const braid_loaded_device *device = &launches->model->devices[function->device];
  return function->run(launches->env, buffers, buffers + function->input_count,
                       device->described.weights, launches->own_arena);
}

/* A launch on the calling thread, which has ended when this returns. */
static void run_here(braid_launches *launches, int64_t number, void *const *buffers,
                     const int64_t *after, int64_t after_count) {
  for (int64_t i = 0; i < after_count; ++i)
    finish(launches->env, after[i]);
  if (braid_launches_here(launches, number, buffers) == 0)
    return;
  drain(launches);
  longjmp(launches->failed, 1);
}

static int64_t submit(const braid_env *env, int64_t number, void *const *buffers,
                      const int64_t *after, int64_t after_count) {
  braid_launches *launches = braid_context_launches(env);
  if (launches->model->descriptor->functions[number].on_caller) {
    run_here(launches, number, buffers, after, after_count);
    return BRAID_LAUNCH_ENDED;
  }
  const braid_model_v2 *model = launches->model->descriptor;
  const braid_function_v1 *function = &model->functions[number];
  const braid_loaded_device *device = &launches->model->devices[function->device];
  int64_t count = function->input_count + function->output_count;
  launch *own = braid_launch_take(launches, count + after_count);
  if (own == NULL)
    fail(launches, "out of memory for a launch");
  memcpy(own->lists, buffers, (size_t)count * sizeof(void *));
  const braid_submission **waits = (const braid_submission **)(own->lists + count);
  int64_t wait_count = 0;
  for (int64_t i = 0; i < after_count; ++i) {
    launch *before = braid_launch_find(launches, after[i]);
    if (before == NULL || before->ended)
      continue;
    ++before->dependents;
    waits[wait_count++] = &before->submission;
  }
  own->submission = (braid_submission){
      .program = device->program,
      .function = number,
      .env = &launches->devices[function->device].env,
      .inputs = own->lists,
      .outputs = own->lists + function->input_count,
      .arena = launches->devices[function->device].arena,
      .after_count = wait_count,
      .after = waits,
      .compute = function->run != NULL ? compute : NULL,
      .plugin = device->plugin,
      .device = device->device,
  };
  own->ended = false;
  own->dependents = 0;
  own->begin = braid_trace_begin(launches->env->observer->trace);
  own->float_mode = braid_float_mode();
  if (device->plugin->submit(device->device, &own->submission) != 0) {
    char message[2 * BRAID_DEVICE_ERROR];
    snprintf(message, sizeof message, "cannot start '@%s' on '%s': %s", function->name,
             model->devices[function->device].name, own->submission.error);
    fail(launches, message);
  }
  own->free = false;
  return own->ticket;
}

/* The first failed launch among a launch and those for which it waited. */
static const launch *first_failed(const launch *one) {
  for (int64_t i = 0; i < one->submission.after_count; ++i)
    if (one->submission.after[i]->status != 0)
      return first_failed((const launch *)(const void *)one->submission.after[i]);
  return one;
}

/* The reason of a failed launch: the plugin's message, with the name of the function. */
static void name_failure(const launch *one, char *text, size_t size) {
  const braid_model_v2 *model = one->launches->model->descriptor;
  const braid_function_v1 *function = &model->functions[one->submission.function];
  const char *error = one->submission.error;
  if (error[0] == '\'') /* which has it already */
    snprintf(text, size, "%s", error);
  else
    snprintf(text, size, "'@%.100s' on '%.60s': %.150s", function->name,
             model->devices[function->device].name, error[0] != '\0' ? error : "failed");
}

/* Another than `submit` and `finish`: nothing of the context but the device's part is used. */
int32_t braid_launches_stage(braid_launches *launches, int64_t number, void **buffers,
                             unsigned float_mode, char *error, size_t size) {
  const braid_function_v1 *function = &launches->model->descriptor->functions[number];
  const braid_loaded_device *device = &launches->model->devices[function->device];
  device_state *state = &launches->devices[function->device];
  launch own = {.launches = launches, .float_mode = float_mode};
  own.submission = (braid_submission){
      .program = device->program,
      .function = number,
      .env = &state->env,
      .inputs = buffers,
      .outputs = buffers + function->input_count,
      .arena = state->arena,
      .compute = function->run != NULL ? compute : NULL,
      .plugin = device->plugin,
      .device = device->device,
  };
  uint64_t begin = braid_trace_begin(launches->env->observer->trace);
  if (device->plugin->run != NULL) {
    device->plugin->run(device->device, &own.submission);
  } else if (device->plugin->submit(device->device, &own.submission) == 0) {
    device->plugin->wait(device->device, own.submission.ticket);
  } else {
    own.submission.status = -1;
  }
  state->nanoseconds += own.submission.nanoseconds;
  braid_trace_end(launches->env->observer->trace, BRAID_TRACE_LAUNCH, number,
                  own.submission.nanoseconds, begin);
  if (own.submission.status != 0)
    name_failure(&own, error, size);
  return own.submission.status;
}

static void finish(const braid_env *env, int64_t ticket) {
  braid_launches *launches = braid_context_launches(env);
  launch *own = braid_launch_find(launches, ticket);
  if (own == NULL || own->ended)
    return;
  own->submission.plugin->wait(own->submission.device, own->submission.ticket);
  if (own->submission.status != 0) {
    char message[2 * BRAID_DEVICE_ERROR];
    name_failure(first_failed(own), message, sizeof message);
    fail(launches, message);
  }
  braid_launch_end(own);
  braid_launch_release(own);
}

/* ---- The launches of a context ---- */

void braid_launches_collect(braid_launches *launches, int64_t device, uint64_t *counts,
                            uint64_t *times) {
  braid_env *own = &launches->devices[device].env;
  for (int64_t k = 0; k < launches->model->descriptor->counter_count; ++k) {
    counts[k] += own->counts[k];
    times[k] += own->times[k];
    own->counts[k] = own->times[k] = 0;
  }
}

/* Adds what functions counted on their devices to the counters of the context. */
static void collect_counters(braid_launches *launches) {
  for (int64_t i = 0; i < launches->model->descriptor->device_count; ++i)
    braid_launches_collect(launches, i, launches->env->counts, launches->env->times);
}

int32_t braid_launches_run(braid_launches *launches, int32_t (*body)(void *), void *argument) {
  if (setjmp(launches->failed) != 0) {
    collect_counters(launches);
    return -1;
  }
  int32_t status = body(argument);
  drain(launches);
  collect_counters(launches);
  return status;
}

int64_t braid_launches_time(const braid_launches *launches, int64_t device) {
  return launches->devices[device].nanoseconds;
}

void braid_launches_observe(braid_launches *launches, struct braid_observer *observer) {
  for (int64_t i = 0; i < launches->model->descriptor->device_count; ++i) {
    launches->devices[i].env.observer = observer;
    launches->devices[i].env.parallel_for = launches->env->parallel_for;
  }
}

void braid_launches_reset(braid_launches *launches) {
  for (int64_t i = 0; i < launches->model->descriptor->device_count; ++i)
    launches->devices[i].nanoseconds = 0;
}

static bool create_state(device_state *state, const braid_model_t *model, int64_t index,
                         const braid_env *env) {
  const braid_model_v2 *descriptor = model->descriptor;
  const braid_loaded_device *device = &model->devices[index];
  size_t counters = (size_t)descriptor->counter_count;
  int64_t bytes = 1;
  for (int64_t i = 0; i < descriptor->function_count; ++i)
    if (descriptor->functions[i].device == index && descriptor->functions[i].arena_bytes > bytes)
      bytes = descriptor->functions[i].arena_bytes;
  state->env = *env;
  if (device->plugin->threads > 0 && device->plugin->threads < env->threads)
    state->env.threads = device->plugin->threads;
  state->env.fail = record_failure;
  state->env.counts = calloc(counters + 1, sizeof(uint64_t));
  state->env.times = calloc(counters + 1, sizeof(uint64_t));
  state->env.submit = NULL;
  state->env.finish = NULL;
  state->arena = braid_device_allocate(device, bytes);
  if (state->arena == NULL)
    braid_device_no_room(device, "intermediate results", bytes);
  else if (state->env.counts == NULL || state->env.times == NULL)
    braid_set_error("out of memory");
  else
    return true;
  return false;
}

/* Memory for functions that run on the launching thread, one at a time. */
static bool create_own_arena(braid_launches *launches) {
  const braid_model_v2 *descriptor = launches->model->descriptor;
  int64_t bytes = -1, align = descriptor->arena_align;
  for (int64_t i = 0; i < descriptor->function_count; ++i)
    if (descriptor->functions[i].on_caller && descriptor->functions[i].arena_bytes > bytes)
      bytes = descriptor->functions[i].arena_bytes;
  if (bytes < 0)
    return true;
  if (posix_memalign(&launches->own_arena, (size_t)(align > ARENA_ALIGN ? align : ARENA_ALIGN),
                     bytes > 0 ? (size_t)bytes : 1) == 0)
    return true;
  launches->own_arena = NULL;
  braid_set_error("out of memory: functions of the host take %lld bytes", (long long)bytes);
  return false;
}

braid_launches *braid_launches_create(braid_model_t *model, braid_env *env) {
  size_t devices = (size_t)model->descriptor->device_count;
  braid_launches *launches = calloc(1, sizeof *launches);
  if (launches == NULL || (launches->devices = calloc(devices, sizeof(device_state))) == NULL) {
    free(launches);
    braid_set_error("out of memory");
    return NULL;
  }
  launches->model = model;
  launches->env = env;
  for (int64_t i = 0; i < model->descriptor->device_count; ++i)
    if (!create_state(&launches->devices[i], model, i, env)) {
      braid_launches_close(launches);
      return NULL;
    }
  if (!create_own_arena(launches)) {
    braid_launches_close(launches);
    return NULL;
  }
  env->submit = submit;
  env->finish = finish;
  return launches;
}

void braid_launches_close(braid_launches *launches) {
  if (launches == NULL)
    return;
  for (int64_t i = 0; i < launches->model->descriptor->device_count; ++i) {
    device_state *state = &launches->devices[i];
    const braid_loaded_device *device = &launches->model->devices[i];
    if (state->arena != NULL)
      braid_device_release(device, state->arena);
    free(state->env.counts);
    free(state->env.times);
  }
  for (int64_t i = 0; i < launches->count; ++i) {
    free(launches->all[i]->lists);
    free(launches->all[i]);
  }
  free(launches->all);
  free(launches->own_arena);
  free(launches->devices);
  free(launches);
}
