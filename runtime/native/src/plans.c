/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Plans are made without the lock, by whoever asks for sizes that none of those that are kept is
 * for; threads that do so at once make the same, and one of these is kept. Evicted plans live until
 * the last context gives them back.
 */
#define _POSIX_C_SOURCE 200809L
#include "plans.h"

#include "internal.h"
#include "message.h"
#include "sizes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLANS = 64, LINE = 64, TEXT_BYTES = 320 };

#define MOST_BYTES ((size_t)4 << 20)

typedef struct slot {
  uint64_t hash;
  uint64_t used; /* when it was last asked for */
  braid_plan *plan;
} slot;

struct braid_plans {
  const braid_model_v2 *model;
  braid_lifetimes lifetimes;
  slot slots[MOST_PLANS];
  int count;
  size_t bytes; /* of all plans here */
  uint64_t clock;
};

/* One for all models: it is held for less than a microsecond. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool handles_forks;

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void handle_forks(void) {
  handles_forks = pthread_atfork(before_fork, after_fork, after_fork) == 0;
}

int64_t braid_arena_align(const braid_model_v2 *model) {
  return model->arena_align > LINE ? model->arena_align : LINE;
}

/* ---- Making ---- */

bool braid_fail_at(const braid_model_v2 *model, const int64_t *dims, const char *format, ...) {
  char what[2 * TEXT_BYTES] = "", sizes[TEXT_BYTES] = "";
  va_list arguments;
  va_start(arguments, format);
  braid_message message = braid_message_in(what, sizeof what);
  braid_append_list(&message, format, arguments);
  va_end(arguments);
  message = braid_message_in(sizes, sizeof sizes);
  braid_append_sizes(model, dims, &message);
  braid_set_error(model->dim_count > 0 ? "%s (%s)" : "%s", what, sizes);
  return false;
}

static const char *reason_of(int64_t failure) {
  switch (failure) {
  case BRAID_SIZE_OVERFLOW:
    return "exceeds 64 bits";
  case BRAID_SIZE_DIVISION_BY_ZERO:
    return "is divided by zero";
  default:
    return "is no integer of 64 bits";
  }
}

/* Computes the results of the size program, and whether the model runs at them. A failed check
 * explains the error better than a size without a value. */
static bool compute_sizes(const braid_model_v2 *model, const int64_t *dims,
                          braid_size_value *values, int64_t *sizes) {
  const braid_open_v1 *open = model->open;
  braid_size_program program = braid_sizes_of(model);
  int64_t failing = 0;
  int64_t failure = braid_evaluate_sizes(&program, dims, values, sizes, &failing);
  for (int64_t i = 0; i < open->check_count; ++i) {
    const braid_size_check_v1 *check = &open->checks[i];
    int64_t size = sizes[check->size]; /* 0 where it has no value */
    if (check->kind == BRAID_SIZE_IS_ZERO ? size != 0 : size < 0)
      return braid_fail_at(model, dims, "%s", check->message);
  }
  return failure == 0 || braid_fail_at(model, dims, "size %lld of the model %s", (long long)failing,
                                       reason_of(failure));
}

static bool shape_outputs(const braid_model_v2 *model, const int64_t *dims, const int64_t *sizes,
                          int64_t *shapes) {
  for (int64_t i = 0; i < model->output_count; ++i) {
    const braid_tensor_v2 *output = &model->outputs[i];
    for (int64_t d = 0; d < output->rank; ++d) {
      int64_t size = sizes[model->open->output_shapes[i][d]];
      if (size < 0 || size > output->bound[d] ||
          (output->shape[d] >= 0 && size != output->shape[d]))
        return braid_fail_at(model, dims, "dim %lld of output '%s' would be %lld", (long long)d,
                             output->name, (long long)size);
      shapes[d] = size;
    }
    if (!braid_is_addressable(output->rank, shapes))
      return braid_fail_at(model, dims, "output '%s' would be too large for this computer",
                           output->name);
    shapes += output->rank;
  }
  return true;
}

static bool place_buffers(const braid_plans *plans, const int64_t *dims, const int64_t *sizes,
                          void *room, int64_t *offsets, int64_t *arena_bytes) {
  const braid_model_v2 *model = plans->model;
  int64_t count = model->open->buffer_count, align = braid_arena_align(model);
  int64_t *bytes = room;
  for (int64_t i = 0; i < count; ++i) {
    int64_t own = sizes[model->open->buffers[i].bytes];
    if (own < 0)
      return braid_fail_at(model, dims, "buffer %lld of the model would have %lld bytes",
                           (long long)i, (long long)own);
    if (__builtin_add_overflow(own, align - 1, &bytes[i]))
      return braid_fail_at(model, dims, "the model's arena would exceed 64 bits");
    bytes[i] &= -align;
  }
  return braid_pack(&plans->lifetimes, bytes, bytes + count, offsets, arena_bytes) ||
         braid_fail_at(model, dims, "the model's arena would exceed 64 bits");
}

/* The bytes of a plan without the dims' sizes and the arrays to which it points. */
static braid_plan *new_plan(const braid_model_v2 *model) {
  size_t count = (size_t)(model->dim_count + model->open->result_count);
  count += (size_t)model->open->buffer_count;
  for (int64_t i = 0; i < model->output_count; ++i)
    count += (size_t)model->outputs[i].rank;
  size_t bytes = sizeof(braid_plan) + count * sizeof(int64_t);
  braid_plan *plan = malloc(bytes);
  if (plan == NULL)
    return NULL;
  plan->bytes = bytes;
  atomic_init(&plan->references, 1);
  return plan;
}

static braid_plan *make_plan(const braid_plans *plans, const int64_t *dims) {
  const braid_model_v2 *model = plans->model;
  const braid_open_v1 *open = model->open;
  size_t values_bytes = (size_t)open->step_count * sizeof(braid_size_value);
  size_t packing_bytes =
      (size_t)open->buffer_count * sizeof(int64_t) + braid_packing_bytes(open->buffer_count);
  braid_size_value *values = malloc(values_bytes + packing_bytes);
  braid_plan *plan = new_plan(model);
  if (values == NULL || plan == NULL) {
    braid_set_error("out of memory for the sizes of the model");
    free(values);
    free(plan);
    return NULL;
  }
  int64_t *sizes = plan->numbers + model->dim_count, *offsets = sizes + open->result_count;
  int64_t *shapes = offsets + open->buffer_count;
  if (model->dim_count > 0)
    memcpy(plan->numbers, dims, (size_t)model->dim_count * sizeof *dims);
  plan->dims = plan->numbers;
  plan->sizes = sizes;
  plan->output_shapes = shapes;
  bool made =
      compute_sizes(model, dims, values, sizes) && shape_outputs(model, dims, sizes, shapes) &&
      place_buffers(plans, dims, sizes, values + open->step_count, offsets, &plan->arena_bytes);
  free(values);
  if (made)
    return plan;
  free(plan);
  return NULL;
}

/* ---- Keeping; with the lock ---- */

static braid_plan *retain(braid_plan *plan) {
  atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
  return plan;
}

void braid_plan_release(braid_plan *plan) {
  if (plan != NULL && atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) == 1)
    free(plan);
}

static braid_plan *find(braid_plans *plans, uint64_t hash, const int64_t *dims) {
  for (int i = 0; i < plans->count; ++i) {
    slot *own = &plans->slots[i];
    if (own->hash == hash && braid_same_shape(plans->model->dim_count, own->plan->dims, dims)) {
      own->used = ++plans->clock;
      return retain(own->plan);
    }
  }
  return NULL;
}

static void evict_oldest(braid_plans *plans) {
  slot *oldest = &plans->slots[0];
  for (int i = 1; i < plans->count; ++i)
    if (plans->slots[i].used < oldest->used)
      oldest = &plans->slots[i];
  plans->bytes -= oldest->plan->bytes;
  braid_plan_release(oldest->plan);
  *oldest = plans->slots[--plans->count];
}

static void keep(braid_plans *plans, uint64_t hash, braid_plan *plan) {
  if (plan->bytes > MOST_BYTES)
    return;
  while (plans->count == MOST_PLANS || plans->bytes + plan->bytes > MOST_BYTES)
    evict_oldest(plans);
  plans->slots[plans->count++] = (slot){hash, ++plans->clock, retain(plan)};
  plans->bytes += plan->bytes;
}

/* ---- What contexts call ---- */

braid_plans *braid_plans_create(const braid_model_v2 *model) {
  pthread_once(&fork_once, handle_forks);
  braid_plans *plans = calloc(1, sizeof *plans);
  if (!handles_forks || plans == NULL ||
      !braid_lifetimes_read(&plans->lifetimes, model->open->buffer_count, model->open->buffers)) {
    free(plans);
    braid_set_error("out of memory");
    return NULL;
  }
  plans->model = model;
  return plans;
}

void braid_plans_free(braid_plans *plans) {
  if (plans == NULL)
    return;
  while (plans->count > 0)
    evict_oldest(plans);
  braid_lifetimes_free(&plans->lifetimes);
  free(plans);
}

braid_plan *braid_plans_find(braid_plans *plans, const int64_t *dims) {
  uint64_t hash = braid_digest(dims, (size_t)plans->model->dim_count * sizeof *dims);
  pthread_mutex_lock(&lock);
  braid_plan *found = find(plans, hash, dims);
  pthread_mutex_unlock(&lock);
  if (found != NULL)
    return found;
  braid_plan *made = make_plan(plans, dims);
  if (made == NULL)
    return NULL;
  pthread_mutex_lock(&lock);
  found = find(plans, hash, dims);
  if (found == NULL)
    keep(plans, hash, made);
  pthread_mutex_unlock(&lock);
  if (found == NULL)
    return made;
  braid_plan_release(made);
  return found;
}
