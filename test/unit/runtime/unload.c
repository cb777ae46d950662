/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loads the runtime that the argument names, runs a model on two threads here and in a child, and
 * unloads it: no thread is left whose code is gone. Linked with scaled_sum.c.
 */
#include "braid/runtime.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 20, ROWS = 1000, COLUMNS = 8 };

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

static void run(void *runtime) {
  static float x[ROWS * COLUMNS], y[ROWS * COLUMNS], total;
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

int main(int count, char **arguments) {
  alarm(100);
  REQUIRE(count == 2 && count_threads() == 1);
  int most = 1;
  for (int turn = 0; turn < TURNS; ++turn) {
    void *runtime = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    REQUIRE(runtime != NULL);
    run(runtime);
    most = count_threads() > most ? count_threads() : most;
    pid_t child = fork();
    if (child == 0) {
      alarm(100);
      run(runtime);
      REQUIRE(dlclose(runtime) == 0);
      REQUIRE(count_threads() == 1);
      exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(dlclose(runtime) == 0);
    REQUIRE(count_threads() == 1);
  }
  REQUIRE(most == 2);
  return 0;
}
