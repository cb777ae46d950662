/* A model whose output is what the runtime made of its weights. Macros say how. */
#include "braid/runtime.h"

#include <string.h>

#ifndef DTYPE
#define DTYPE 1
#endif
#ifndef STORED
#define STORED 64
#endif
#ifndef EXPANDED
#define EXPANDED 64
#endif
#ifndef OUTER
#define OUTER 2
#endif
#ifndef INPUTS
#define INPUTS 2
#endif
#ifndef OUTPUTS
#define OUTPUTS 3
#endif
#ifndef INNER
#define INNER 21
#endif
#ifndef EXPANDED_BYTES
#define EXPANDED_BYTES (64 + 4 * 2 * 3 * 21)
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef WEIGHTS_BYTES
#define WEIGHTS_BYTES (64 + 4 * 2 * 2 * 21)
#endif

static int32_t run(const braid_env *env, void *const *inputs, void *const *outputs,
                   const void *weights, void *arena) {
  (void)inputs, (void)weights, (void)arena;
  memcpy(outputs[0], (const char *)env->expanded + 64, 4 * 2 * 3 * 21);
  return 0;
}

static const int64_t shape[] = {2, 3, 21};
static const braid_tensor_v2 outputs[] = {{"y", 1, 3, shape, shape, 0}};
static const double matrix[] = {1, 0, 0.5, -2, 0, 0};
static const braid_expansion_v1 expansions[] = {
    {STORED, EXPANDED, DTYPE, OUTER, INPUTS, OUTPUTS, INNER, matrix}};

const braid_model_v2 braid_model = {
    .abi_version = BRAID_ABI_VERSION,
    .output_count = 1,
    .outputs = outputs,
    .run = run,
    .weights_bytes = WEIGHTS_BYTES,
    .expanded_bytes = EXPANDED_BYTES,
    .expansion_count = COUNT,
    .expansions = expansions,
};
