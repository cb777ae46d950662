/* y[i] = k[0] for k[1] elements: a model of which the elements of an input are sizes, as a code
 * generator would emit it. What a damaged description says is defined from outside. */
#include "braid/runtime.h"

#ifndef INPUT
#define INPUT 0
#endif
#ifndef ELEMENT
#define ELEMENT 1
#endif
#ifndef DIM
#define DIM 1
#endif
#ifndef DTYPE
#define DTYPE 7
#endif
#ifndef COUNT
#define COUNT 2
#endif

#if DTYPE == 6
typedef int32_t integer;
#else
typedef int64_t integer;
#endif

static int32_t run(const braid_env *env, void *const *inputs, void *const *outputs,
                   const void *weights, void *arena) {
  (void)weights, (void)arena;
  const integer *k = inputs[0];
  float *y = outputs[0];
  if (env->sizes[0] != k[0] || env->sizes[1] != k[1]) {
    env->fail(env, "the sizes are not those of this run");
    return 1;
  }
  for (int64_t i = 0; i < env->sizes[1]; ++i)
    y[i] = (float)env->sizes[0];
  return 0;
}

enum { SYMBOL = 2 };
static const int64_t steps[][4] = {{SYMBOL, 0}, {SYMBOL, 1}};
static const int64_t results[] = {0, 1}, y_shape[] = {1};
static const int64_t *const output_shapes[] = {y_shape};
static const braid_value_size_v1 values[] = {{0, 0, 0}, {INPUT, ELEMENT, DIM}};
static const braid_open_v1 open = {.step_count = 2,
                                   .steps = steps[0],
                                   .result_count = 2,
                                   .results = results,
                                   .output_shapes = output_shapes,
                                   .value_count = COUNT,
                                   .values = values};

static const int64_t two[] = {2}, opened[] = {-1}, any[] = {INT64_MAX};
static const braid_tensor_v2 inputs[] = {{"k", DTYPE, 1, two, two, NULL}};
static const braid_tensor_v2 outputs[] = {{"y", 1, 1, opened, any, NULL}};
static const braid_dim_v2 dims[] = {{"k.value[0]", 0}, {"k.value[1]", 0}};

const braid_model_v2 braid_model = {.abi_version = BRAID_ABI_VERSION,
                                    .input_count = 1,
                                    .inputs = inputs,
                                    .output_count = 1,
                                    .outputs = outputs,
                                    .run = run,
                                    .dim_count = 2,
                                    .dims = dims,
                                    .open = &open};
