/* many_models STEPS ARTIFACT…: holds all artifacts at once, then loads, runs and closes them in
 * random order from four threads. The artifact of number i, counted from 1, multiplies the sum of
 * its weights' bias (0 to 7) and 3 by i. Fails unless every result is right, and unless in the end
 * as many descriptors and mappings of code and artifacts are there as before. */
#define _GNU_SOURCE
#include <braid/runtime.h>

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8, THREADS = 4, MOST = 64 };

static char **paths;
static int count, steps;
static braid_model_t *models[MOST];
static pthread_mutex_t locks[MOST];

static void fail(const char *what, int number) {
  fprintf(stderr, "%s %d: %s\n", what, number, braid_last_error());
  exit(1);
}

static void run(braid_model_t *model, int number) {
  float x[1000 * COLUMNS] = {0}, y[1000 * COLUMNS], total = 0;
  void *inputs[] = {x}, *outputs[] = {y, &total};
  int64_t shape[] = {1, COLUMNS};
  for (int i = 0; i < COLUMNS; ++i)
    x[i] = 1;
  braid_context_t *context = braid_context_create(model, 1);
  if (context == NULL || braid_context_set_input_shape(context, 0, shape) != 0 ||
      braid_context_run(context, inputs, outputs) != 0)
    fail("cannot run", number);
  for (int i = 0; i < COLUMNS; ++i)
    if (y[i] != (float)(number * (3 + i)))
      fail("wrong result", number);
  braid_context_close(context);
}

static void load(int i) {
  models[i] = braid_model_open(paths[i]);
  if (models[i] == NULL)
    fail("cannot load", i + 1);
}

static void *work(void *seed) {
  unsigned state = (unsigned)(size_t)seed;
  for (int step = 0; step < steps; ++step) {
    int i = rand_r(&state) % count;
    pthread_mutex_lock(&locks[i]);
    if (models[i] == NULL)
      load(i);
    run(models[i], i + 1);
    if (rand_r(&state) % 2) {
      braid_model_close(models[i]);
      models[i] = NULL;
    }
    pthread_mutex_unlock(&locks[i]);
  }
  return NULL;
}

static int count_descriptors(void) {
  DIR *directory = opendir("/proc/self/fd");
  int found = 0;
  while (directory != NULL && readdir(directory) != NULL)
    ++found;
  closedir(directory);
  return found;
}

static int count_mappings(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  int found = 0;
  while (fgets(line, sizeof line, maps) != NULL)
    found += strstr(line, "braid-code") != NULL || strstr(line, ".braid") != NULL;
  fclose(maps);
  return found;
}

int main(int argc, char **argv) {
  steps = atoi(argv[1]);
  paths = argv + 2;
  count = argc - 2;
  int descriptors = count_descriptors(), mappings = count_mappings();
  for (int i = 0; i < count; ++i) {
    pthread_mutex_init(&locks[i], NULL);
    load(i);
  }
  for (int i = 0; i < count; ++i)
    run(models[i], i + 1);
  if (count_mappings() <= mappings)
    fail("mappings are not counted", count);
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, work, (void *)(i + 1));
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < count; ++i)
    braid_model_close(models[i]);
  if (count_descriptors() != descriptors)
    fail("descriptors", count_descriptors() - descriptors);
  if (count_mappings() != mappings)
    fail("mappings", count_mappings() - mappings);
  return 0;
}
