/* random_requests SEED COUNT THREADS ARTIFACT...: opens artifacts of f32, whole and damaged, and
 * sends them requests of random shapes, right and wrong, from several threads at once. Buffers have
 * exactly the bytes that they need, so that a sanitizer sees all that goes beyond. Prints how many
 * requests were answered and refused, and artifacts refused. */
#include <braid/runtime.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, MOST = 16, REQUESTS = 8 };

typedef struct worker {
  pthread_t thread;
  unsigned seed;
  int count, paths, answered, refused, damaged;
  char **path;
} worker;

static int64_t pick(worker *own, int64_t below) { return rand_r(&own->seed) % below; }

static size_t bytes_of(const braid_tensor_v2 *tensor, const int64_t *shape) {
  size_t bytes = sizeof(float);
  for (int64_t d = 0; d < tensor->rank; ++d)
    bytes *= (size_t)shape[d];
  return bytes;
}

/* A shape that fits, or nearly, or not at all. */
static void shape_of(worker *own, const braid_tensor_v2 *tensor, const int64_t *sizes,
                     int64_t *shape) {
  for (int64_t d = 0; d < tensor->rank; ++d) {
    int64_t dim = tensor->dims != NULL ? tensor->dims[d] : -1;
    shape[d] = tensor->shape[d] >= 0 ? tensor->shape[d]
               : dim >= 0 ? sizes[dim]
                          : pick(own, tensor->bound[d] + 1); /* of an open model, all are dims */
    if (pick(own, 12) == 0)
      shape[d] = (int64_t[]){-1, 0, 1, INT64_MAX, INT64_MIN, shape[d] + 1}[pick(own, 6)];
  }
}

static void send(worker *own, braid_context_t *context, const braid_model_v2 *model) {
  int64_t shape[64], sizes[MOST] = {0};
  void *inputs[MOST] = {0}, *outputs[MOST] = {0};
  for (int64_t dim = 0; dim < model->dim_count && dim < MOST; ++dim)
    sizes[dim] = pick(own, 10);
  int fits = 1;
  for (int64_t i = 0; i < model->input_count && fits; ++i) {
    shape_of(own, &model->inputs[i], sizes, shape);
    fits = braid_context_set_input_shape(context, i, shape) == 0;
    if (fits)
      inputs[i] = calloc(bytes_of(&model->inputs[i], shape), 1);
  }
  for (int64_t i = 0; i < model->output_count && fits; ++i) {
    const int64_t *own_shape = model->outputs[i].bound;
    if (model->open != NULL && (own_shape = braid_context_output_shape(context, i)) == NULL)
      break;
    outputs[i] = calloc(bytes_of(&model->outputs[i], own_shape), 1);
  }
  if (fits && braid_context_run(context, inputs, outputs) == 0) {
    ++own->answered;
    for (int64_t i = 0; i < model->output_count; ++i)
      fits &= braid_context_output_shape(context, i) != NULL;
  } else {
    ++own->refused;
    if (strlen(braid_last_error()) == 0 || strlen(braid_last_error()) >= 1024)
      abort();
  }
  for (int i = 0; i < MOST; ++i) {
    free(inputs[i]);
    free(outputs[i]);
  }
}

/* A copy of the artifact, in which some bits are flipped or the end is missing where `wrong`. */
static void *copy_of(worker *own, const void *data, size_t *size, int wrong) {
  size_t kept = wrong && pick(own, 4) == 0 ? (size_t)pick(own, (int64_t)*size) : *size;
  uint8_t *copy = aligned_alloc(PAGE, (kept / PAGE + 1) * PAGE);
  if (copy == NULL)
    abort();
  memcpy(copy, data, kept);
  for (int64_t i = wrong && kept == *size ? pick(own, 4) : -1; i >= 0; --i)
    copy[pick(own, pick(own, 2) ? 512 : (int64_t)kept) % (int64_t)kept] ^= 1 << pick(own, 8);
  *size = kept;
  return copy;
}

static void *work(void *argument) {
  worker *own = argument;
  for (int i = 0; i < own->count; ++i) {
    const char *path = own->path[pick(own, own->paths)];
    size_t size = 0, mapped = 0;
    const void *data = braid_map_file(path, &size);
    if (data == NULL)
      abort();
    mapped = size;
    void *copy = copy_of(own, data, &size, pick(own, 3) != 0);
    braid_unmap_file(data, mapped);
    braid_model_t *model = braid_model_from_artifact(copy, size, path);
    braid_context_t *context = model != NULL ? braid_context_create(model, 1 + pick(own, 3)) : NULL;
    for (int request = 0; context != NULL && request < REQUESTS; ++request)
      send(own, context, braid_model_describe(model));
    own->damaged += context == NULL;
    braid_context_close(context);
    braid_model_close(model);
    free(copy);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 5)
    return 2;
  int threads = atoi(argv[3]), answered = 0, refused = 0, damaged = 0;
  worker *workers = calloc((size_t)threads, sizeof *workers);
  for (int i = 0; i < threads; ++i) {
    workers[i] = (worker){.seed = (unsigned)(atoi(argv[1]) + i),
                          .count = atoi(argv[2]),
                          .path = argv + 4,
                          .paths = argc - 4};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
      return 2;
  }
  for (int i = 0; i < threads; ++i) {
    pthread_join(workers[i].thread, NULL);
    answered += workers[i].answered;
    refused += workers[i].refused;
    damaged += workers[i].damaged;
  }
  free(workers);
  printf("%d %d %d\n", answered, refused, damaged);
  return 0;
}
