/* y = 2 * x, flat, and sums[i] = the sum of column i of 2 * x, plus s[i]; x has any shape, and s
 * twice as many elements as x columns. What a code generator would emit for a model whose sizes are
 * open, written by hand: the intermediate results are in the arena, each where the runtime says,
 * and the run fails where one is overwritten while it is live. */
#include "braid/runtime.h"

#include <string.h>

enum { BATCH, COLUMNS, TWICE };                                                 /* dims */
enum { FLAT, DOUBLED_BYTES, SUMS_BYTES, LAST_BYTES, REST, ROOM, COLUMN_COUNT }; /* results */
enum { DOUBLED = COLUMN_COUNT + 1, SUMS, LAST };                                /* offsets */
enum { MOST_COLUMNS = 1000000 };

static int32_t run(const braid_env *env, void *const *inputs, void *const *outputs,
                   const void *weights, void *arena) {
  (void)weights;
  const int64_t *sizes = env->sizes;
  const float *x = inputs[0], *s = inputs[1];
  float *y = outputs[0], *total = outputs[1];
  float *doubled = (float *)((char *)arena + sizes[DOUBLED]);
  float *sums = (float *)((char *)arena + sizes[SUMS]);
  char *last = (char *)arena + sizes[LAST];
  int64_t columns = sizes[COLUMN_COUNT];
  if (sizes[FLAT] != env->input_shapes[0][0] * env->input_shapes[0][1] ||
      env->output_shapes[0][0] != sizes[FLAT] || sizes[DOUBLED] % 128 != 0 ||
      sizes[SUMS] % 128 != 0 || (uintptr_t)arena % 128 != 0) {
    env->fail(env, "the sizes are not those of this run");
    return 1;
  }
  for (int64_t i = 0; i < sizes[FLAT]; ++i)
    doubled[i] = 2 * x[i];
  memset(sums, 0, (size_t)sizes[SUMS_BYTES]);
  for (int64_t i = 0; i < sizes[FLAT]; ++i)
    sums[i % columns] += doubled[i];
  for (int64_t i = 0; i < sizes[FLAT]; ++i)
    y[i] = doubled[i];
  memset(last, 0x7f, (size_t)sizes[LAST_BYTES]);
  for (int64_t i = 0; i < columns; ++i)
    total[i] = sums[i] + s[i];
  return 0;
}

/* As support/sizes/program.py numbers operations. */
enum { NUMBER = 1, SYMBOL, ADD, MULTIPLY };

static const int64_t steps[][4] = {
    {SYMBOL, BATCH},
    {SYMBOL, COLUMNS},
    {SYMBOL, TWICE},
    {NUMBER, 4},
    {MULTIPLY, 0, 1}, /* 4: the elements of x */
    {MULTIPLY, 4, 3}, /* 5: and their bytes */
    {MULTIPLY, 1, 3}, /* 6: of a row */
    {ADD, 0, 1},
    {MULTIPLY, 7, 3}, /* 8: bytes that end the run */
    {NUMBER, -2},
    {MULTIPLY, 9, 1},
    {ADD, 2, 10}, /* 11: how many elements of s are too many */
    {NUMBER, MOST_COLUMNS},
    {NUMBER, -1},
    {MULTIPLY, 13, 1},
    {ADD, 12, 14}, /* 15: how many more columns there may be */
};
static const int64_t results[] = {4, 5, 6, 8, 11, 15, 1};
static const braid_buffer_v1 buffers[] = {
    {DOUBLED_BYTES, 0, 1}, {SUMS_BYTES, 1, 2}, {LAST_BYTES, 2, 2}};
static const int64_t flat[] = {FLAT}, row[] = {COLUMN_COUNT};
static const int64_t *const output_shapes[] = {flat, row};
static const braid_size_check_v1 checks[] = {
    {REST, BRAID_SIZE_IS_ZERO, "input 's': dim 0 is not 2 * n"},
    {ROOM, BRAID_SIZE_IS_NOT_NEGATIVE, "input 'x': dim 1 is not at most 1000000"}};
static const braid_open_v1 open = {sizeof steps / sizeof *steps,
                                   steps[0],
                                   sizeof results / sizeof *results,
                                   results,
                                   3,
                                   buffers,
                                   output_shapes,
                                   2,
                                   checks,
                                   0,
                                   NULL,
                                   NULL};

static const int64_t shape[] = {-1, -1}, bound[] = {INT64_MAX, INT64_MAX};
static const int64_t x_dims[] = {BATCH, COLUMNS}, s_dims[] = {TWICE}, no_dims[] = {-1};
static const braid_tensor_v2 inputs[] = {{"x", 1, 2, shape, bound, x_dims},
                                         {"s", 1, 1, shape, bound, s_dims}};
static const braid_tensor_v2 outputs[] = {{"y", 1, 1, shape, bound, no_dims},
                                          {"sums", 1, 1, shape, bound, no_dims}};
static const braid_dim_v2 dims[] = {{"batch", 0}, {"n", 0}, {"2 * n", 0}};

const braid_model_v2 braid_model = {.abi_version = BRAID_ABI_VERSION,
                                    .input_count = 2,
                                    .inputs = inputs,
                                    .output_count = 2,
                                    .outputs = outputs,
                                    .arena_align = 128,
                                    .run = run,
                                    .dim_count = 3,
                                    .dims = dims,
                                    .open = &open};
