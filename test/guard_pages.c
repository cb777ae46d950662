/* Runs of models with inaccessible pages around every buffer whose place is known at run time.
 *
 * Linked to the runtime by `--wrap=braid_context_run`, so that the runs of phases come here too.
 * Every input and output, and every buffer of the arena of an open model, has separate pages,
 * whatever its plan is. The rest of its pages holds a pattern, which must be unchanged after the
 * run.
 */
#define _GNU_SOURCE
#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { PATTERN = 0xA5 };

/* Pages of which the first and the last are inaccessible. */
typedef struct guarded {
  char *pages, *data;
  size_t inside; /* bytes of the pages between these */
  size_t bytes;
} guarded;

/* An input or output: the caller's memory, and its guarded replacement. */
typedef struct port {
  char *given, *data;
  size_t bytes;
  guarded own; /* unless it lies in the memory of an output */
} port;

/* The settings of a test for all runs. */
static struct {
  bool at_begin;
  size_t missing;
  const int64_t *places; /* offset and bytes of each buffer */
  int64_t place_count;
  size_t placed_bytes;
} said;

int __real_braid_context_run(braid_context_t *context, void *const *inputs, void *const *outputs);
EXPORT int __wrap_braid_context_run(braid_context_t *context, void *const *inputs,
                                    void *const *outputs);
EXPORT void guard_pages(int begin, size_t missing);
EXPORT void guard_places(const int64_t *places, int64_t count, size_t bytes);

/* Lets buffers touch the page before or that after them; those of open models lack some bytes. */
void guard_pages(int begin, size_t missing) {
  said.at_begin = begin != 0;
  said.missing = missing;
}

/* The offsets of buffers in arenas of these bytes, for fixed sizes: each in separate pages, with a
 * page between two. */
void guard_places(const int64_t *places, int64_t count, size_t bytes) {
  said.places = places;
  said.place_count = count;
  said.placed_bytes = bytes;
}

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static _Noreturn void stop(const char *what, int64_t number, const char *why) {
  fprintf(stderr, "%s %lld: %s\n", what, (long long)number, why);
  abort();
}

/* ---- Buffers ---- */

static void *allocate(size_t count, size_t bytes) {
  void *memory = calloc(count + 1, bytes);
  if (memory == NULL)
    abort();
  return memory;
}

static size_t whole_pages(size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

static char *reserve(size_t bytes) {
  char *pages = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    abort();
  return pages;
}

/* The buffer that begins so many bytes after its first accessible page. */
static guarded guard_at(char *pages, size_t before, size_t bytes) {
  size_t page = page_bytes(), inside = whole_pages(before + bytes);
  if (inside > 0 && mprotect(pages + page, inside, PROT_READ | PROT_WRITE) != 0)
    abort();
  memset(pages + page, PATTERN, inside);
  return (guarded){pages, pages + page + before, inside, bytes};
}

static guarded guard(size_t bytes) {
  size_t inside = whole_pages(bytes);
  char *pages = reserve(inside + 2 * page_bytes());
  return guard_at(pages, said.at_begin ? 0 : inside - bytes, bytes);
}

/* Gives a buffer back, where nothing has changed beside it. */
static void release(guarded *own, const char *what, int64_t number) {
  char *begin = own->pages + page_bytes();
  for (size_t i = 0; i < own->inside; ++i)
    if ((begin + i < own->data || begin + i >= own->data + own->bytes) &&
        (unsigned char)begin[i] != PATTERN)
      stop(what, number, "memory beside it was written");
  munmap(own->pages, own->inside + 2 * page_bytes());
}

/* ---- Inputs and outputs ---- */

static port *guard_outputs(const braid_context_t *context, void *const *outputs) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  port *ports = allocate((size_t)descriptor->output_count, sizeof *ports);
  bool is_shaped = descriptor->open != NULL || descriptor->variant_count > 0;
  for (int64_t i = 0; i < descriptor->output_count; ++i) {
    const braid_tensor_v2 *output = &descriptor->outputs[i];
    const int64_t *shape = is_shaped ? context->output_shapes[i] : output->bound;
    size_t bytes = braid_tensor_bytes(output, shape);
    ports[i] = (port){outputs[i], NULL, bytes, guard(bytes)};
    ports[i].data = ports[i].own.data;
    if (bytes > 0) /* with the rows of a state that is appended to */
      memcpy(ports[i].data, outputs[i], bytes);
  }
  return ports;
}

/* Those that share memory with an output do so here. */
static port *guard_inputs(const braid_context_t *context, void *const *inputs,
                          const port *outputs) {
  const braid_model_v2 *descriptor = context->model->descriptor;
  port *ports = allocate((size_t)descriptor->input_count, sizeof *ports);
  for (int64_t i = 0; i < descriptor->input_count; ++i) {
    size_t bytes = braid_tensor_bytes(&descriptor->inputs[i], context->input_shapes[i]);
    ports[i] = (port){inputs[i], NULL, bytes, {NULL, NULL, 0, 0}};
    for (int64_t k = 0; outputs != NULL && bytes > 0 && k < descriptor->output_count; ++k)
      if (ports[i].given >= outputs[k].given &&
          ports[i].given + bytes <= outputs[k].given + outputs[k].bytes)
        ports[i].data = outputs[k].data + (ports[i].given - outputs[k].given);
    if (ports[i].data != NULL)
      continue;
    ports[i].own = guard(bytes);
    ports[i].data = ports[i].own.data;
    if (bytes > 0)
      memcpy(ports[i].data, inputs[i], bytes);
  }
  return ports;
}

static void **places(const port *ports, int64_t count) {
  void **found = allocate((size_t)count, sizeof *found);
  for (int64_t i = 0; i < count; ++i)
    found[i] = ports[i].data;
  return found;
}

static void release_outputs(port *ports, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (ports[i].bytes > 0)
      memcpy(ports[i].given, ports[i].data, ports[i].bytes);
    release(&ports[i].own, "output", i);
  }
  free(ports);
}

static void release_inputs(port *ports, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (ports[i].own.pages == NULL)
      continue;
    if (ports[i].bytes > 0 && memcmp(ports[i].given, ports[i].data, ports[i].bytes) != 0)
      stop("input", i, "it was written");
    release(&ports[i].own, "input", i);
  }
  free(ports);
}

/* ---- Arenas ---- */

/* The replacement of the arena of a context. */
typedef struct arena {
  guarded *buffers;
  int64_t count;
  char *base;
  int64_t *sizes; /* of an open model: as those of the plan, with other offsets; else NULL */
} arena;

/* As the compiler has placed the buffers. */
static arena place_as_said(void) {
  arena own = {allocate((size_t)said.place_count, sizeof *own.buffers), said.place_count,
               reserve(said.placed_bytes), NULL};
  for (int64_t i = 0; i < own.count; ++i) {
    size_t offset = (size_t)said.places[2 * i], before = offset % page_bytes();
    char *pages = own.base + (offset - before - page_bytes());
    own.buffers[i] = guard_at(pages, before, (size_t)said.places[2 * i + 1]);
  }
  return own;
}

/* Replaces the offsets of the plan. */
static arena place_apart(const braid_open_v1 *open, const int64_t *planned) {
  size_t numbers = (size_t)(open->result_count + open->buffer_count);
  arena own = {allocate((size_t)open->buffer_count, sizeof *own.buffers), open->buffer_count, NULL,
               allocate(numbers, sizeof *own.sizes)};
  memcpy(own.sizes, planned, numbers * sizeof *planned);
  for (int64_t i = 0; i < own.count; ++i) {
    size_t bytes = (size_t)planned[open->buffers[i].bytes];
    own.buffers[i] = guard(bytes > said.missing ? bytes - said.missing : 0);
    if (own.base == NULL || own.buffers[i].pages < own.base)
      own.base = own.buffers[i].pages;
  }
  for (int64_t i = 0; i < own.count; ++i)
    own.sizes[open->result_count + i] = own.buffers[i].data - own.base;
  return own;
}

static arena enter(braid_context_t *context) {
  arena own = {NULL, 0, NULL, NULL};
  if (context->plan != NULL)
    own = place_apart(context->model->descriptor->open, context->plan->sizes);
  else if (context->model->descriptor->arena_bytes > 0)
    own = place_as_said();
  if (own.count == 0)
    return own;
  free(context->arena);
  context->arena = own.base;
  context->arena_bytes = INT64_MAX;
  if (own.sizes != NULL)
    context->env.sizes = own.sizes;
  return own;
}

static void leave(arena *own, braid_context_t *context) {
  if (own->count > 0) {
    context->arena = NULL;
    context->arena_bytes = 0;
  }
  if (own->sizes != NULL)
    context->env.sizes = context->plan->sizes;
  for (int64_t i = 0; i < own->count; ++i)
    release(&own->buffers[i], "buffer of the arena", i);
  free(own->buffers);
  free(own->sizes);
}

/* ---- Runs ---- */

/* The context whose code runs, planned for its inputs; NULL where the run fails before that, and
 * for phases, whose runs come here one by one: results may lie in the inputs of the whole model. */
static braid_context_t *planned(braid_context_t *context, void *const *inputs) {
  const braid_variant_v2 *variant;
  if (context->phases != NULL || !braid_read_values(context, inputs) ||
      !braid_context_set_output_shapes(context, &variant))
    return NULL;
  return context->chosen != NULL ? planned(context->chosen, inputs) : context;
}

int __wrap_braid_context_run(braid_context_t *context, void *const *inputs, void *const *outputs) {
  braid_context_t *runs = planned(context, inputs);
  if (runs == NULL)
    return __real_braid_context_run(context, inputs, outputs);
  const braid_model_v2 *descriptor = context->model->descriptor;
  int64_t input_count = descriptor->input_count, output_count = descriptor->output_count;
  port *made = outputs != NULL ? guard_outputs(context, outputs) : NULL;
  port *given = guard_inputs(context, inputs, made);
  void **from = places(given, input_count);
  void **to = made != NULL ? places(made, output_count) : NULL;
  arena own = enter(runs);
  int status = __real_braid_context_run(context, from, to);
  leave(&own, runs);
  if (made != NULL)
    release_outputs(made, output_count);
  release_inputs(given, input_count);
  free(from);
  free(to);
  return status;
}
