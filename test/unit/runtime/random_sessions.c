/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Random steps, forks, resets and failures of sessions in several threads, beside a copy of what
 * each state must be. The model appends the negative of x[1,T,4] to its state, and returns `y` of
 * the shape of x. Prints the number of steps and of failures that were expected.
 *
 *   random_sessions MODEL.braid OTHER.braid SEED THREADS ROUNDS
 */
#include <braid/runtime.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 4, MOST = 400, SESSIONS = 6, MOST_THREADS = 16 };

#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, braid_last_error());              \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* What the state of a session must be. */
typedef struct mirror {
  braid_session_t *session;
  int64_t length;
  float rows[MOST][WIDTH];
} mirror;

typedef struct worker {
  braid_model_t *model;
  const mirror *root; /* shared by all threads, which fork it */
  unsigned seed;
  int64_t rounds, steps, failures;
} worker;

static unsigned draw(unsigned *seed, unsigned end) {
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % end;
}

static int64_t number_of(const braid_model_v2 *model, const char *name) {
  for (int64_t i = 0; i < model->input_count; ++i)
    if (strcmp(model->inputs[i].name, name) == 0)
      return i;
  for (int64_t i = 0; i < model->output_count; ++i)
    if (strcmp(model->outputs[i].name, name) == 0)
      return i;
  exit(1);
}

/* Steps of `count` rows, into a mirror that has room for them. */
static void step(mirror *own, braid_context_t *context, const braid_model_v2 *model, int64_t count,
                 unsigned *seed) {
  float x[8 * WIDTH], y[8 * WIDTH];
  void *inputs[2] = {NULL, NULL}, *outputs[2] = {NULL, NULL};
  int64_t input = number_of(model, "x"), shape[3] = {1, count, WIDTH};
  for (int64_t i = 0; i < count * WIDTH; ++i) {
    x[i] = (float)draw(seed, 1000);
    own->rows[own->length + i / WIDTH][i % WIDTH] = -x[i];
  }
  inputs[input] = x;
  outputs[number_of(model, "y")] = y;
  REQUIRE(braid_context_set_input_shape(context, input, shape) == 0);
  REQUIRE(braid_session_step(own->session, context, inputs, outputs) == 0);
  own->length += count;
}

/* A step that must fail, since its batch is another one, or since a buffer is missing. */
static void fail(const mirror *own, braid_context_t *context, const braid_model_v2 *model,
                 unsigned *seed) {
  float x[2 * WIDTH] = {0}, y[2 * WIDTH];
  int64_t input = number_of(model, "x"), shape[3] = {2, 1, WIDTH};
  int is_missing = draw(seed, 2) != 0;
  shape[0] = is_missing ? 1 : 2;
  void *inputs[2] = {NULL, NULL}, *outputs[2] = {NULL, NULL};
  inputs[input] = x;
  if (!is_missing)
    outputs[number_of(model, "y")] = y;
  REQUIRE(braid_context_set_input_shape(context, input, shape) == 0);
  REQUIRE(braid_session_step(own->session, context, inputs, outputs) != 0);
  REQUIRE(braid_last_error()[0] != '\0');
}

static void check(const mirror *own, const braid_model_v2 *model) {
  int64_t input = number_of(model, "past");
  REQUIRE(braid_session_length(own->session) == own->length);
  if (own->length == 0)
    return;
  const int64_t *shape = braid_session_shape(own->session, input);
  REQUIRE(shape != NULL && shape[0] * shape[1] == own->length && shape[2] == WIDTH);
  const float *data = braid_session_data(own->session, input);
  REQUIRE(memcmp(data, own->rows, (size_t)own->length * sizeof own->rows[0]) == 0);
}

static void set(mirror *own, const braid_model_v2 *model, unsigned *seed) {
  own->length = draw(seed, 20);
  for (int64_t i = 0; i < own->length * WIDTH; ++i)
    own->rows[i / WIDTH][i % WIDTH] = (float)draw(seed, 1000);
  int64_t input = number_of(model, "past"), shape[3] = {own->length, own->length, WIDTH};
  shape[model->states[0].order != NULL ? 1 : 0] = 1; /* the batch */
  REQUIRE(braid_session_set_state(own->session, input, shape, own->rows) == 0);
}

static void *work(void *argument) {
  worker *own = argument;
  const braid_model_v2 *model = braid_model_describe(own->model);
  braid_context_t *context = braid_context_create(own->model, 1);
  mirror *all = calloc(SESSIONS, sizeof *all);
  REQUIRE(context != NULL && all != NULL);
  for (int64_t round = 0; round < own->rounds; ++round) {
    mirror *one = &all[draw(&own->seed, SESSIONS)];
    const mirror *from = draw(&own->seed, 4) == 0 ? own->root : &all[draw(&own->seed, SESSIONS)];
    unsigned kind = draw(&own->seed, 16);
    if (one->session == NULL || (kind < 3 && from != one && from->session != NULL)) {
      braid_session_close(one->session);
      *one = from->session != NULL ? *from : (mirror){NULL, 0, {{0}}};
      one->session = from->session != NULL ? braid_session_fork(from->session)
                                           : braid_session_create(own->model, draw(&own->seed, 20));
      REQUIRE(one->session != NULL);
    } else if (kind == 3) {
      REQUIRE(braid_session_reset(one->session) == 0);
      one->length = 0;
    } else if (kind == 4) {
      set(one, model, &own->seed);
    } else if (kind == 5 && one->length > 0) {
      fail(one, context, model, &own->seed);
      ++own->failures;
    } else if (one->length + 8 <= MOST) {
      step(one, context, model, 1 + draw(&own->seed, draw(&own->seed, 3) == 0 ? 8 : 1), &own->seed);
      ++own->steps;
    }
    check(one, model);
  }
  for (int i = 0; i < SESSIONS; ++i) {
    if (all[i].session != NULL)
      check(&all[i], model);
    braid_session_close(all[i].session);
  }
  free(all);
  braid_context_close(context);
  return NULL;
}

static void refuse(braid_model_t *model, const char *other_path) {
  const braid_model_v2 *description = braid_model_describe(model);
  int64_t past = number_of(description, "past"), x = number_of(description, "x");
  int64_t wrong[3] = {1, 1, WIDTH + 1}, negative[3] = {1, -1, WIDTH}, one[3] = {1, 1, WIDTH};
  float row[2 * WIDTH] = {0};
  REQUIRE(braid_session_create(NULL, 0) == NULL);
  REQUIRE(braid_session_create(model, -1) == NULL);
  puts(braid_last_error());
  REQUIRE(braid_session_create(model, INT64_MAX) == NULL);
  puts(braid_last_error());
  REQUIRE(braid_session_fork(NULL) == NULL && braid_session_reset(NULL) != 0);
  REQUIRE(braid_session_length(NULL) == -1 && braid_session_shape(NULL, 0) == NULL);
  REQUIRE(braid_session_step(NULL, NULL, NULL, NULL) != 0);
  braid_session_t *session = braid_session_create(model, 0);
  braid_context_t *context = braid_context_create(model, 1);
  REQUIRE(session != NULL && context != NULL);
  REQUIRE(braid_session_shape(session, past) == NULL);
  puts(braid_last_error());
  REQUIRE(braid_session_data(session, x) == NULL);
  puts(braid_last_error());
  REQUIRE(braid_session_set_state(session, 99, one, row) != 0);
  REQUIRE(braid_session_set_state(session, past, wrong, row) != 0);
  puts(braid_last_error());
  REQUIRE(braid_session_set_state(session, past, negative, row) != 0);
  REQUIRE(braid_session_set_state(session, past, NULL, row) != 0);
  REQUIRE(braid_session_set_state(session, past, one, NULL) != 0);
  puts(braid_last_error());
  REQUIRE(braid_session_step(session, NULL, NULL, NULL) != 0);
  REQUIRE(braid_session_step(session, context, NULL, NULL) != 0);
  REQUIRE(braid_session_length(session) == 0);
  braid_model_t *other = braid_model_open(other_path);
  braid_context_t *foreign = braid_context_create(other, 1);
  REQUIRE(other != NULL && foreign != NULL && braid_session_create(other, 0) == NULL);
  puts(braid_last_error());
  REQUIRE(braid_session_step(session, foreign, NULL, NULL) != 0);
  puts(braid_last_error());
#ifndef NO_HUGE
  braid_session_t *huge = braid_session_create(model, INT64_C(1) << 40);
  void *inputs[2] = {row, row}, *outputs[2] = {row, row};
  REQUIRE(braid_context_set_input_shape(context, x, one) == 0);
  REQUIRE(huge != NULL && braid_session_step(huge, context, inputs, outputs) != 0);
  puts(braid_last_error());
  braid_session_close(huge);
#endif
  braid_session_close(session);
  braid_session_close(NULL);
  braid_context_close(foreign);
  braid_model_close(other);
  braid_context_close(context);
}

int main(int argc, char **argv) {
  if (argc != 6)
    return 2;
  braid_model_t *model = braid_model_open(argv[1]);
  REQUIRE(model != NULL);
  refuse(model, argv[2]);
  unsigned seed = (unsigned)atoi(argv[3]);
  int count = atoi(argv[4]);
  mirror *root = calloc(1, sizeof *root);
  braid_context_t *context = braid_context_create(model, 1);
  REQUIRE(root != NULL && context != NULL && count > 0 && count <= MOST_THREADS);
  root->session = braid_session_create(model, 32);
  REQUIRE(root->session != NULL);
  step(root, context, braid_model_describe(model), 5, &seed);
  braid_context_close(context);
  worker workers[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  int64_t steps = 0, failures = 0;
  for (int i = 0; i < count; ++i) {
    workers[i] = (worker){model, root, seed + (unsigned)i * 7919u, atoll(argv[5]), 0, 0};
    REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < count; ++i) {
    REQUIRE(pthread_join(threads[i], NULL) == 0);
    steps += workers[i].steps;
    failures += workers[i].failures;
  }
  check(root, braid_model_describe(model));
  braid_session_close(root->session);
  braid_model_close(model);
  free(root);
  printf("%lld %lld\n", (long long)steps, (long long)failures);
  return 0;
}
