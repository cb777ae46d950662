/* open_models THREADS SIZES: runs the model of open_model.c from several threads at once, each at
 * so many sizes, most of which none had before, and checks all results; a child that is forked
 * meanwhile does so too. Prints how many runs there were, how many bytes the model kept and the
 * process grew by after the first tenth of them, and the fewest bytes that a trim gave back after a
 * run with an arena of 12 MiB. */
#define _GNU_SOURCE
#include <braid/runtime.h>

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 2048, NEAR = 8, FORKS = 8, TRIMS = 20 };

extern const braid_model_v2 braid_model;

typedef struct worker {
  pthread_t thread;
  braid_model_t *model;
  unsigned seed;
  long count;
} worker;

static atomic_long runs;

static void stop(const char *what) {
  fprintf(stderr, "%s: %s\n", what, braid_last_error());
  abort();
}

/* Runs at one size, in buffers with exactly the bytes that they need. */
static void run_at(braid_context_t *context, int64_t batch, int64_t n) {
  float *x = malloc((size_t)(batch * n) * sizeof *x + 1);
  float *s = malloc((size_t)(2 * n) * sizeof *s + 1);
  for (int64_t i = 0; i < batch * n; ++i)
    x[i] = (float)(i % 7);
  for (int64_t i = 0; i < 2 * n; ++i)
    s[i] = (float)i;
  if (braid_context_set_input_shape(context, 0, (int64_t[]){batch, n}) != 0 ||
      braid_context_set_input_shape(context, 1, (int64_t[]){2 * n}) != 0)
    stop("a shape is refused");
  const int64_t *shape = braid_context_output_shape(context, 0);
  if (shape == NULL || shape[0] != batch * n)
    stop("wrong shape of y");
  float *y = malloc((size_t)shape[0] * sizeof *y + 1);
  shape = braid_context_output_shape(context, 1);
  if (shape == NULL || shape[0] != n)
    stop("wrong shape of sums");
  float *sums = malloc((size_t)shape[0] * sizeof *sums + 1);
  if (braid_context_run(context, (void *[]){x, s}, (void *[]){y, sums}) != 0)
    stop("a run fails");
  for (int64_t i = 0; i < batch * n; ++i) {
    if (y[i] != 2 * x[i])
      stop("wrong y");
    s[i % n] += 2 * x[i];
  }
  for (int64_t i = 0; i < n; ++i)
    if (sums[i] != s[i])
      stop("wrong sums");
  free(x);
  free(s);
  free(y);
  free(sums);
}

static int64_t pick(worker *own, int64_t below) { return rand_r(&own->seed) % below; }

static void *work(void *argument) {
  worker *own = argument;
  braid_context_t *context = braid_context_create(own->model, 1);
  if (context == NULL)
    stop("there is no context");
  for (long i = 0; i < own->count; ++i) {
    int far = pick(own, 4) > 0, wide = far && pick(own, 2);
    run_at(context, pick(own, wide ? NEAR : far ? MOST : NEAR), pick(own, wide ? MOST : NEAR));
    if (pick(own, 100) == 0)
      braid_context_trim(context);
    ++runs;
  }
  braid_context_close(context);
  return NULL;
}

static void run_in_child(braid_model_t *model) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    work(&(worker){.model = model, .seed = 1, .count = 20});
    _exit(0);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    stop("a child fails");
}

static long resident_bytes(void) {
  long pages = 0, ignored = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &ignored, &pages) != 2)
    stop("no statm");
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* In a thread of its own, whose heap lies elsewhere than the main thread's. `malloc_trim` keeps
 * what is free at such a heap's end, where the arena comes to lie once malloc's lists of small
 * blocks are full: after a few rounds. */
static void *trim(void *argument) {
  long *fewest = argument;
  braid_model_t *model = braid_model_from_descriptor(&braid_model, NULL, 0);
  braid_context_t *context = braid_context_create(model, 1);
  if (context == NULL)
    stop("there is no context");
  mallopt(M_MMAP_THRESHOLD, 32 << 20); /* else blocks of this size are pages of their own */
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  *fewest = LONG_MAX;
  enum { ROWS = 3072, N = 1024 };
  static float x[ROWS * N], s[2 * N], y[ROWS * N], sums[N];
  for (int i = 0; i < TRIMS; ++i) {
    if (braid_context_set_input_shape(context, 0, (int64_t[]){ROWS, N}) != 0 ||
        braid_context_set_input_shape(context, 1, (int64_t[]){2 * N}) != 0 ||
        braid_context_run(context, (void *[]){x, s}, (void *[]){y, sums}) != 0)
      stop("a run fails");
    long before = resident_bytes();
    braid_context_trim(context);
    long freed = before - resident_bytes();
    *fewest = freed < *fewest ? freed : *fewest;
  }
  braid_context_close(context);
  braid_model_close(model);
  return NULL;
}

static long fewest_trimmed(void) {
  pthread_t thread;
  long fewest = 0;
  if (pthread_create(&thread, NULL, trim, &fewest) != 0)
    stop("no thread");
  pthread_join(thread, NULL);
  return fewest;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  int threads = atoi(argv[1]);
  long count = atol(argv[2]);
  braid_model_t *model = braid_model_from_descriptor(&braid_model, NULL, 0);
  if (model == NULL)
    stop("there is no model");
  worker *workers = calloc((size_t)threads, sizeof *workers);
  work(&(worker){.model = model, .seed = 77, .count = 100});
  size_t kept = mallinfo2().uordblks;
  for (int i = 0; i < threads; ++i) {
    workers[i] = (worker){.model = model, .seed = (unsigned)i, .count = count};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
      return 2;
  }
#ifndef NO_FORKS
  for (int i = 0; i < FORKS; ++i)
    run_in_child(model);
#else
  (void)run_in_child;
#endif
  while (runs < count * threads / 10)
    usleep(1000);
  long before = resident_bytes();
  for (int i = 0; i < threads; ++i)
    pthread_join(workers[i].thread, NULL);
  long grown = resident_bytes() - before, all = (long)(mallinfo2().uordblks - kept);
  free(workers);
  braid_model_close(model);
  printf("%ld %ld %ld %ld\n", (long)runs, all, grown, fewest_trimmed());
  return 0;
}
