/* y = gain * (scale * x + bias), total = sum of y; the gain is part of the code; rows of x are
 * open. What a code generator would emit, written by hand: parallel over rows, partial sums in the
 * arena, one profile counter. */
#include "braid/runtime.h"

enum { ROWS = 1000, COLUMNS = 8 };

#ifndef ABI
#define ABI BRAID_ABI_VERSION
#endif
#ifndef ARENA_BYTES
#define ARENA_BYTES (ROWS * sizeof(double))
#endif
#ifndef WEIGHTS_BYTES
#define WEIGHTS_BYTES 128
#endif
#ifdef FEATURE
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
static const char *const features[] = {TEXT(FEATURE)};
#define FEATURE_COUNT 1
#else
#define features 0
#define FEATURE_COUNT 0
#endif

/* Tests find it by the tag and set another. */
static const volatile struct {
  char tag[8];
  double gain;
} constants = {"the gain", 1.0};

typedef struct task {
  const float *x, *scale, *bias;
  float gain;
  float *y;
  double *partial;
} task;

static void run_rows(void *context, int64_t begin, int64_t end) {
  const task *t = context;
  for (int64_t row = begin; row < end; ++row) {
    double sum = 0.0;
    for (int64_t i = row * COLUMNS; i < (row + 1) * COLUMNS; ++i) {
      t->y[i] = t->gain * (t->scale[0] * t->x[i] + t->bias[i % COLUMNS]);
      sum += t->y[i];
    }
    t->partial[row] = sum;
  }
}

static int32_t run(const braid_env *env, void *const *inputs, void *const *outputs,
                   const void *weights, void *arena) {
  uint64_t start = env->now();
  const char *bytes = weights;
  task t = {inputs[0],
            (const float *)bytes,
            (const float *)(bytes + 64),
            (float)constants.gain,
            outputs[0],
            arena};
  if (t.x[0] < 0.0f) {
    env->fail(env, "x[0] is negative");
    return 1;
  }
  if (t.x[0] > 1e6f)
    return 7;
  int64_t rows = env->input_shapes[0][0];
  env->parallel_for(env, run_rows, &t, rows);
  double total = 0.0;
  for (int64_t row = 0; row < rows; ++row)
    total += t.partial[row];
  *(float *)outputs[1] = (float)total;
  env->output_shapes[0][0] = rows;
  env->counts[0] += 1;
  env->times[0] += env->now() - start;
  return 0;
}

static const int64_t open_shape[] = {-1, COLUMNS};
static const int64_t bound[] = {ROWS, COLUMNS};
static const braid_tensor_v2 inputs[] = {{"x", 1, 2, open_shape, bound}};
static const braid_tensor_v2 outputs[] = {{"y", 1, 2, open_shape, bound}, {"total", 1, 0, 0, 0}};
static const char *const counters[] = {"scaled_sum"};

const braid_model_v2 braid_model = {
    ABI, 1,        inputs, 2, outputs, ARENA_BYTES, 64, FEATURE_COUNT, features,
    1,   counters, run,    0, 0,       0,           0,  WEIGHTS_BYTES};
