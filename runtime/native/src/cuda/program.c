/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _POSIX_C_SOURCE 200809L
#include "program.h"
#include "../message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  ALIGN = 256,
  GRAPHS = 8 /* of a function that are kept: one for each combination of buffers */
};

/* A step with what the driver needs for it. */
typedef struct loaded_step {
  const plan_step *planned;
  cuda_function entries[PLAN_ENTRIES];
  void **values;         /* addresses of the arguments below */
  cuda_address *buffers; /* as many as there are arguments */
  cuda_tensor_map *maps; /* likewise */
} loaded_step;

typedef struct kept_graph {
  cuda_graph_exec exec; /* NULL for none */
  cuda_address *key;    /* arena, weights, inputs, outputs */
  uint64_t used;
} kept_graph;

typedef struct loaded_function {
  const plan_function *planned; /* NULL for functions of other devices */
  const braid_function_v1 *described;
  loaded_step *steps;
  kept_graph graphs[GRAPHS];
} loaded_function;

struct cuda_program {
  const braid_device_model *model;
  plan *plan;
  cuda_module module;         /* NULL where nothing is launched */
  loaded_function *functions; /* as many as the model has */
  uint64_t turn;              /* of graphs */
};

bool braid_cuda_succeeded(const cuda_gpu *gpu, const char *call, cuda_result result, char *error,
                          size_t size) {
  static const struct {
    const char *name, *symbol;
  } known[] = {
#define ENTRY(NAME, SYMBOL, PARAMETERS) {#NAME, SYMBOL},
      BRAID_CUDA_CALLS(ENTRY)
#undef ENTRY
  };
  if (result == CUDA_OK)
    return true;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strcmp(known[i].name, call) == 0)
      call = known[i].symbol;
  braid_cuda_describe(gpu->driver, call, result, error, size);
  return false;
}

int64_t braid_cuda_aligned(int64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

const braid_device_model *braid_cuda_program_model(const cuda_program *program) {
  return program->model;
}

/* ---- Functions ---- */

static bool find_entry(const cuda_gpu *gpu, const cuda_program *program, const plan_step *planned,
                       const char *name, cuda_function *entry, char *error, size_t size) {
  if (program->module == NULL) {
    snprintf(error, size, "there is no code for '%s'; compile the model again", name);
    return false;
  }
  if (!CUDA_TRY(gpu, error, size, module_function, entry, program->module, name))
    return false;
  int threads = 0;
  if (!CUDA_TRY(gpu, error, size, function_attribute, &threads, CUDA_FUNCTION_MAX_THREADS, *entry))
    return false;
  if (planned->threads > threads) {
    snprintf(error, size, "'%s' runs in blocks of %d threads at most, not of %lld", name, threads,
             (long long)planned->threads);
    return false;
  }
  if (planned->shared_bytes == 0)
    return true;
  int most = 0, own = 0;
  if (!CUDA_TRY(gpu, error, size, device_attribute, &most, CUDA_SHARED_OPTIN, gpu->device) ||
      !CUDA_TRY(gpu, error, size, function_attribute, &own, CUDA_FUNCTION_SHARED, *entry))
    return false;
  if (own + planned->shared_bytes > most) {
    snprintf(error, size, "'%s' takes %lld bytes of shared memory, a block of this GPU has %d",
             name, (long long)(own + planned->shared_bytes), most);
    return false;
  }
  return CUDA_TRY(gpu, error, size, set_function_attribute, *entry, CUDA_FUNCTION_DYNAMIC,
                  (int)planned->shared_bytes);
}

/* Both entries of a step, which are equal if one takes all buffers. */
static bool find_entries(const cuda_gpu *gpu, const cuda_program *program, loaded_step *step,
                         char *error, size_t size) {
  const plan_step *planned = step->planned;
  for (int e = 0; e < PLAN_ENTRIES; ++e)
    if (e > 0 && strcmp(planned->entries[e], planned->entries[0]) == 0)
      step->entries[e] = step->entries[0];
    else if (!find_entry(gpu, program, planned, planned->entries[e], &step->entries[e], error,
                         size))
      return false;
  return true;
}

static bool load_step(const cuda_gpu *gpu, const cuda_program *program, loaded_step *step,
                      char *error, size_t size) {
  size_t count = (size_t)step->planned->argument_count + 1;
  step->values = calloc(count, sizeof *step->values);
  step->buffers = calloc(count, sizeof *step->buffers);
  void *maps = NULL;
  if (posix_memalign(&maps, _Alignof(cuda_tensor_map), count * sizeof *step->maps) == 0)
    step->maps = maps;
  if (step->values == NULL || step->buffers == NULL || step->maps == NULL) {
    snprintf(error, size, "out of memory");
    return false;
  }
  for (int64_t i = 0; i < step->planned->argument_count; ++i)
    step->values[i] = step->planned->arguments[i].tensor != NULL ? (void *)&step->maps[i]
                                                                 : (void *)&step->buffers[i];
  return step->planned->copies || find_entries(gpu, program, step, error, size);
}

static bool load_function(const cuda_gpu *gpu, cuda_program *program, const plan_function *planned,
                          char *error, size_t size) {
  const braid_model_v2 *model = program->model->model;
  if (planned->number == model->function_count)
    return true;
  loaded_function *own = &program->functions[planned->number];
  own->planned = planned;
  own->described = &model->functions[planned->number];
  own->steps = calloc((size_t)planned->step_count + 1, sizeof *own->steps);
  if (own->steps == NULL) {
    snprintf(error, size, "out of memory");
    return false;
  }
  for (int64_t i = 0; i < planned->step_count; ++i) {
    own->steps[i].planned = &planned->steps[i];
    if (!load_step(gpu, program, &own->steps[i], error, size))
      return false;
  }
  return true;
}

static bool load(const cuda_gpu *gpu, cuda_program *program, char *error, size_t size) {
  const braid_device_model *model = program->model;
  const braid_device_v1 *device = &model->model->devices[model->device];
  const braid_code_v1 *code = NULL;
  if (!braid_cuda_best_code(gpu, device, &code, error, size))
    return false;
  const braid_code_v1 *planned = braid_cuda_find_plan(device, code);
  if (planned == NULL) {
    snprintf(error, size, "the model has no plan of its launches; compile it again");
    return false;
  }
  program->plan = braid_cuda_read_plan(model, planned->data, planned->bytes, error, size);
  program->functions = calloc((size_t)model->model->function_count + 1, sizeof *program->functions);
  if (program->plan == NULL || program->functions == NULL) {
    if (program->plan != NULL)
      snprintf(error, size, "out of memory");
    return false;
  }
  if (code != NULL && !braid_cuda_load_module(gpu, device, code, &program->module, error, size))
    return false;
  for (int64_t i = 0; i < program->plan->function_count; ++i)
    if (!load_function(gpu, program, &program->plan->functions[i], error, size))
      return false;
  return true;
}

cuda_program *braid_cuda_program_load(const cuda_gpu *gpu, const braid_device_model *model,
                                      char *error, size_t size) {
  cuda_program *program = calloc(1, sizeof *program);
  if (program == NULL) {
    snprintf(error, size, "out of memory");
    return NULL;
  }
  program->model = model;
  if (load(gpu, program, error, size))
    return program;
  braid_cuda_program_unload(gpu, program);
  return NULL;
}

static void drop_graph(const cuda_gpu *gpu, kept_graph *graph) {
  if (graph->exec != NULL)
    gpu->driver->graph_exec_destroy(graph->exec);
  free(graph->key);
  *graph = (kept_graph){0};
}

void braid_cuda_program_unload(const cuda_gpu *gpu, cuda_program *program) {
  int64_t count = program->functions != NULL ? program->model->model->function_count : 0;
  for (int64_t i = 0; i < count; ++i) {
    loaded_function *own = &program->functions[i];
    for (int g = 0; g < GRAPHS; ++g)
      drop_graph(gpu, &own->graphs[g]);
    for (int64_t s = 0; own->steps != NULL && s < own->planned->step_count; ++s) {
      free(own->steps[s].values);
      free(own->steps[s].buffers);
      free(own->steps[s].maps);
    }
    free(own->steps);
  }
  free(program->functions);
  if (program->module != NULL)
    gpu->driver->module_unload(program->module);
  braid_cuda_free_plan(program->plan);
  free(program);
}

int64_t braid_cuda_program_port_bytes(const cuda_program *program) {
  int64_t most = 1;
  for (int64_t i = 0; i < program->model->model->function_count; ++i) {
    const braid_function_v1 *one = program->functions[i].described;
    int64_t bytes = 0;
    for (int64_t p = 0; one != NULL && p < one->input_count + one->output_count; ++p)
      bytes += braid_cuda_aligned(one->bytes[p]);
    most = bytes > most ? bytes : most;
  }
  return most;
}

/* ---- Graphs ---- */

static cuda_address address_of(const cuda_buffers *buffers, const plan_place *place) {
  const cuda_address bases[] = {buffers->arena, buffers->weights,
                                place->space == PLAN_INPUT ? buffers->inputs[place->number] : 0,
                                place->space == PLAN_OUTPUT ? buffers->outputs[place->number] : 0};
  return bases[place->space] + (cuda_address)place->offset;
}

/* A tensor that does not begin at a multiple of 16 bytes has the map of one that begins before it,
 * which the entry for such buffers does not use. */
static bool encode(const cuda_gpu *gpu, const plan_tensor *tensor, cuda_address address,
                   cuda_tensor_map *map, char *error, size_t size) {
  uint32_t steps[PLAN_RANK] = {1, 1, 1, 1, 1};
  return CUDA_TRY(gpu, error, size, tensor_map_encode, map, (int)tensor->type,
                  (uint32_t)tensor->rank,
                  (void *)(uintptr_t)(address / PLAN_ALIGNMENT * PLAN_ALIGNMENT), tensor->extents,
                  tensor->strides, tensor->box, steps, 0, (int)tensor->swizzle, 2, 0);
}

static bool enqueue(const cuda_gpu *gpu, loaded_step *step, const cuda_buffers *buffers,
                    cuda_stream stream, char *error, size_t size) {
  const plan_step *planned = step->planned;
  int chosen = 0;
  for (int64_t i = 0; i < planned->argument_count; ++i) {
    const plan_argument *own = &planned->arguments[i];
    step->buffers[i] = address_of(buffers, &own->place);
    chosen |= step->buffers[i] % PLAN_ALIGNMENT != 0;
    if (own->tensor != NULL &&
        !encode(gpu, own->tensor, step->buffers[i], &step->maps[i], error, size))
      return false;
  }
  if (planned->copies)
    return planned->arguments[0].bytes == 0 ||
           CUDA_TRY(gpu, error, size, copy_async, step->buffers[0], step->buffers[1],
                    (size_t)planned->arguments[0].bytes, stream);
  if (CUDA_TRY(gpu, error, size, launch, step->entries[chosen], (unsigned)planned->blocks, 1, 1,
               (unsigned)planned->threads, 1, 1, (unsigned)planned->shared_bytes, stream,
               step->values, NULL))
    return true;
  braid_message message = braid_message_in(error, size);
  braid_append(&message, " for '%.80s'", planned->entries[chosen]);
  return false;
}

/* All steps of a function, recorded. The stream is as before, whatever fails. */
static bool capture(const cuda_gpu *gpu, loaded_function *own, const cuda_buffers *buffers,
                    cuda_stream stream, cuda_graph *graph, char *error, size_t size) {
  if (!CUDA_TRY(gpu, error, size, capture_begin, stream, CUDA_CAPTURE_THREAD))
    return false;
  bool right = true;
  for (int64_t s = 0; right && s < own->planned->step_count; ++s)
    right = enqueue(gpu, &own->steps[s], buffers, stream, error, size);
  if (right)
    return CUDA_TRY(gpu, error, size, capture_end, stream, graph);
  if (gpu->driver->capture_end(stream, graph) == CUDA_OK && *graph != NULL)
    gpu->driver->graph_destroy(*graph);
  *graph = NULL;
  return false;
}

static bool instantiate(const cuda_gpu *gpu, loaded_function *own, const cuda_buffers *buffers,
                        cuda_stream stream, cuda_graph_exec *exec, char *error, size_t size) {
  cuda_graph graph = NULL;
  if (!capture(gpu, own, buffers, stream, &graph, error, size))
    return false;
  bool made = CUDA_TRY(gpu, error, size, graph_instantiate, exec, graph, 0);
  gpu->driver->graph_destroy(graph);
  return made;
}

/* How many addresses tell the graphs of a function apart. */
static size_t key_count(const loaded_function *own) {
  return (size_t)(2 + own->described->input_count + own->described->output_count);
}

static void write_key(const loaded_function *own, const cuda_buffers *buffers, cuda_address *key) {
  const braid_function_v1 *function = own->described;
  key[0] = buffers->arena;
  key[1] = buffers->weights;
  memcpy(key + 2, buffers->inputs, (size_t)function->input_count * sizeof *key);
  memcpy(key + 2 + function->input_count, buffers->outputs,
         (size_t)function->output_count * sizeof *key);
}

/* The graph for these buffers, or the one that was not used for longest, to be made anew. */
static kept_graph *find_graph(loaded_function *own, const cuda_address *key) {
  kept_graph *oldest = &own->graphs[0];
  for (int g = 0; g < GRAPHS; ++g) {
    kept_graph *graph = &own->graphs[g];
    if (graph->exec != NULL && memcmp(graph->key, key, key_count(own) * sizeof *key) == 0)
      return graph;
    if (graph->used < oldest->used)
      oldest = graph;
  }
  return oldest;
}

bool braid_cuda_program_start(const cuda_gpu *gpu, cuda_program *program, int64_t function,
                              const cuda_buffers *buffers, cuda_stream stream, char *error,
                              size_t size) {
  loaded_function *own = &program->functions[function];
  if (own->planned->step_count == 0)
    return true;
  cuda_address *key = malloc(key_count(own) * sizeof *key);
  if (key == NULL) {
    snprintf(error, size, "out of memory");
    return false;
  }
  write_key(own, buffers, key);
  kept_graph *graph = find_graph(own, key);
  if (graph->exec == NULL || memcmp(graph->key, key, key_count(own) * sizeof *key) != 0) {
    drop_graph(gpu, graph);
    if (!instantiate(gpu, own, buffers, stream, &graph->exec, error, size)) {
      graph->exec = NULL;
      free(key);
      return false;
    }
    graph->key = key;
    key = NULL;
  }
  free(key);
  graph->used = ++program->turn;
  return CUDA_TRY(gpu, error, size, graph_launch, graph->exec, stream);
}

void braid_cuda_program_forget(const cuda_gpu *gpu, cuda_program *program, cuda_address arena) {
  for (int64_t i = 0; i < program->model->model->function_count; ++i)
    for (int g = 0; g < GRAPHS; ++g) {
      kept_graph *graph = &program->functions[i].graphs[g];
      if (graph->exec != NULL && graph->key[0] == arena)
        drop_graph(gpu, graph);
    }
}
