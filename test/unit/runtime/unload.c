/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads the runtime that the argument names, runs a model on two threads here and in a child, and
 * unloads it: no thread is left whose code is gone. With further arguments, copies of the runtime,
 * threads load, use and unload these while the process forks. Linked with scaled_sum.c.
 */
#include "braid/runtime.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 20, FORKS = 150, MOST_COPIES = 8, ROWS = 1000, COLUMNS = 8 };

#define REQUIRE(condition)                                                                         \
  do                                                                                               \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                              \
      _Exit(1);                                                                                    \
    }                                                                                              \
  while (0)

extern const braid_model_v2 braid_model;

static int count_threads(void) {
  DIR *directory = opendir("/proc/self/task");
  REQUIRE(directory != NULL);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
    count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

/* Linux lists a thread that was joined for a moment longer. */
static bool is_alone(void) {
  for (int turn = 0; turn < 1000 && count_threads() > 1; ++turn)
    usleep(1000);
  return count_threads() == 1;
}

static void run(void *runtime) {
  static _Thread_local float x[ROWS * COLUMNS], y[ROWS * COLUMNS], total;
  static _Alignas(64) float weights[32] = {[0] = 2.0f, [16] = 1.0f};
  braid_model_t *(*wrap)(const braid_model_v2 *, const void *, size_t) =
      dlsym(runtime, "braid_model_from_descriptor");
  braid_context_t *(*create)(braid_model_t *, int64_t) = dlsym(runtime, "braid_context_create");
  int (*run_context)(braid_context_t *, void *const *, void *const *) =
      dlsym(runtime, "braid_context_run");
  void (*close_context)(braid_context_t *) = dlsym(runtime, "braid_context_close");
  void (*close_model)(braid_model_t *) = dlsym(runtime, "braid_model_close");
  braid_model_t *model = wrap(&braid_model, weights, sizeof weights);
  REQUIRE(model != NULL);
  braid_context_t *context = create(model, 2);
  REQUIRE(context != NULL);
  for (int i = 0; i < ROWS * COLUMNS; ++i)
    x[i] = 1.0f;
  for (int i = 0; i < 10; ++i) {
    REQUIRE(run_context(context, (void *[]){x}, (void *[]){y, &total}) == 0);
    REQUIRE(total == ROWS * (2.0f * COLUMNS + 1.0f));
  }
  close_context(context);
  close_model(model);
}

static void unload_after_runs(const char *path) {
  int most = 1;
  for (int turn = 0; turn < TURNS; ++turn) {
    void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(runtime != NULL);
    run(runtime);
    most = count_threads() > most ? count_threads() : most;
    pid_t child = fork();
    if (child == 0) {
      alarm(100);
      run(runtime);
      REQUIRE(dlclose(runtime) == 0);
      REQUIRE(is_alone());
      exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(dlclose(runtime) == 0);
    REQUIRE(is_alone());
  }
  REQUIRE(most == 2);
}

static atomic_bool stop;

static void *load_and_unload(void *path) {
  while (!atomic_load(&stop)) {
    void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(runtime != NULL);
    run(runtime);
    REQUIRE(dlclose(runtime) == 0);
  }
  return NULL;
}

static void unload_during_forks(const char *path, int copies, char **paths) {
  void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(runtime != NULL && copies <= MOST_COPIES);
  pthread_t threads[MOST_COPIES];
  for (int i = 0; i < copies; ++i)
    REQUIRE(pthread_create(&threads[i], NULL, load_and_unload, paths[i]) == 0);
  for (int i = 0; i < FORKS; ++i) {
    run(runtime);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      run(runtime);
      _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  }
  atomic_store(&stop, true);
  for (int i = 0; i < copies; ++i)
    REQUIRE(pthread_join(threads[i], NULL) == 0);
}

int main(int count, char **arguments) {
  alarm(100);
  REQUIRE(count >= 2 && count_threads() == 1);
  if (count == 2)
    unload_after_runs(arguments[1]);
  else
    unload_during_forks(arguments[1], count - 2, arguments + 2);
  return 0;
}
