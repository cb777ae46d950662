/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Weights that are stored smaller than code reads them: Winograd's windows, numbers of 16 bits. */
#define _DEFAULT_SOURCE
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ONNX's numbers of these types. */
enum { F32 = 1, F16 = 10, BF16 = 16 };

/* Neighbors that are expanded at once, and the size of pages that are asked for. */
enum { WIDTH = 16, LARGE_PAGE = 2 << 20 };

int64_t braid_stored_size(int64_t dtype) {
  return dtype == F32 ? 4 : dtype == F16 || dtype == BF16 ? 2 : 0;
}

/* In integers, since the caller may have f32 that are flushed to zero. */
static double from_f16(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double magnitude;
  if (exponent == 31)
    magnitude = mantissa != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = mantissa * 0x1p-24;
  else
    magnitude = (double)((int64_t)(1024 + mantissa) << (exponent - 1)) * 0x1p-24;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

static double from_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return (double)value;
}

/* Zeros stand behind the first `count` of WIDTH values. */
static void load(int64_t dtype, const char *stored, int64_t count, double *values) {
  for (int64_t i = 0; dtype == F32 && i < count; ++i)
    values[i] = (double)((const float *)(const void *)stored)[i];
  for (int64_t i = 0; dtype == F16 && i < count; ++i)
    values[i] = from_f16(((const uint16_t *)(const void *)stored)[i]);
  for (int64_t i = 0; dtype == BF16 && i < count; ++i)
    values[i] = from_bf16(((const uint16_t *)(const void *)stored)[i]);
  for (int64_t i = count; i < WIDTH; ++i)
    values[i] = 0;
}

/* Every output of `count` ≤ WIDTH neighbors along the inner dim. */
static void expand_neighbors(const braid_expansion_v1 *own, const char *stored, float *expanded,
                             int64_t count) {
  double inputs[BRAID_MOST_EXPANDED][WIDTH];
  int64_t line = own->inner * braid_stored_size(own->dtype);
  for (int64_t input = 0; input < own->inputs; ++input)
    load(own->dtype, stored + input * line, count, inputs[input]);
  const double *row = own->matrix;
  for (int64_t output = 0; output < own->outputs; ++output, row += own->inputs) {
    double sums[WIDTH] = {0};
    for (int64_t input = 0; input < own->inputs; ++input)
      if (row[input] != 0)
        for (int64_t i = 0; i < WIDTH; ++i)
          sums[i] += row[input] * inputs[input][i];
    for (int64_t i = 0; i < count; ++i)
      expanded[output * own->inner + i] = (float)sums[i];
  }
}

static void expand(const braid_expansion_v1 *own, const char *weights, char *memory) {
  int64_t size = braid_stored_size(own->dtype);
  const char *stored = weights + own->stored;
  float *expanded = (float *)(void *)(memory + own->expanded);
  for (int64_t outer = 0; outer < own->outer; ++outer) {
    for (int64_t begin = 0; begin < own->inner; begin += WIDTH) {
      int64_t left = own->inner - begin, count = left < WIDTH ? left : WIDTH;
      expand_neighbors(own, stored + begin * size, expanded + begin, count);
    }
    stored += own->inputs * own->inner * size;
    expanded += own->outputs * own->inner;
  }
}

/* Memory for `free`; in large pages where it fills some, since it is written at once. */
static char *allocate(size_t bytes) {
  size_t align = bytes < LARGE_PAGE ? BRAID_WEIGHTS_ALIGN : LARGE_PAGE;
  size_t whole = (bytes + align - 1) / align * align;
  char *memory = aligned_alloc(align, whole);
#ifdef MADV_HUGEPAGE
  if (memory != NULL && align == LARGE_PAGE)
    madvise(memory, whole, MADV_HUGEPAGE); /* a wish */
#endif
  return memory;
}

bool braid_expand_weights(const braid_model_v2 *descriptor, const void *weights, void **expanded) {
  int64_t bytes = descriptor->expanded_bytes;
  if (bytes == 0)
    return true;
  char *memory = allocate((size_t)bytes);
  if (memory == NULL) {
    braid_set_error("out of memory: the model's expanded weights take %lld bytes",
                    (long long)bytes);
    return false;
  }
  for (int64_t i = 0; i < descriptor->expansion_count; ++i)
    expand(&descriptor->expansions[i], weights, memory);
  *expanded = memory;
  return true;
}
