/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef BRAID_INTERNAL_H
#define BRAID_INTERNAL_H

#include "braid/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { BRAID_MAX_RANK = 64 };

/* A file mapped for reading, and where its sections lie in it. */
typedef struct braid_container {
  const uint8_t *base;
  size_t size;
  const void *code;
  size_t code_size;
  const void *weights; /* NULL when the model has none */
} braid_container;

struct braid_model {
  const braid_model_v2 *descriptor;
  const void *weights;
  void *library;             /* from dlopen; NULL when the code was already in the process */
  braid_container container; /* base is NULL unless opened from a file */
  atomic_int references;     /* the opener and every context */
};

/* Records a printf-style message as the calling thread's last error. */
void braid_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Maps and checks an artifact. On failure sets the error and leaves nothing mapped. */
bool braid_container_open(const char *path, braid_container *container);
void braid_container_close(braid_container *container);

/* Loads an ELF shared object that lies in memory; NULL and the error set on failure. */
void *braid_load_code(const void *code, size_t size);

void braid_model_retain(braid_model_t *model);

/* The variant for the sizes of the model's dims that the inputs have: the one with exactly these,
 * or else the smallest that they may be padded to. Writes the sizes to `sizes`. NULL and the error
 * set where there is none. */
const braid_variant_v2 *braid_select_variant(const braid_model_v2 *model,
                                             const int64_t *const *input_shapes, int64_t *sizes);

/* `shape` with the sizes of the model's dims put in where the tensor has them. */
void braid_resize(const braid_tensor_v2 *tensor, const int64_t *shape, const int64_t *sizes,
                  int64_t *result);

/* Copies of inputs and outputs at the sizes of a variant; grows as needed. */
typedef struct braid_staging {
  void *memory; /* NULL at first; from malloc */
  size_t bytes;
} braid_staging;

/* Everything of one run of a variant. */
typedef struct braid_padded_run {
  const braid_model_v2 *model;
  const braid_variant_v2 *variant;
  const braid_env *env; /* has the actual shapes of inputs and outputs */
  void *const *inputs;
  void *const *outputs;
  const void *weights;
  void *arena;
} braid_padded_run;

/* Runs a variant on inputs that may be smaller than it takes: these are padded with zeros, and of
 * its outputs the part that they have is copied. Returns the status of its code, or -1 and the
 * failure recorded where there is no memory. */
int32_t braid_run_padded(const braid_padded_run *run, braid_staging *staging);

/* Bytes of a tensor of these sizes. */
size_t braid_tensor_bytes(const braid_tensor_v2 *tensor, const int64_t *shape);

bool braid_same_shape(int64_t rank, const int64_t *left, const int64_t *right);

/* Copies what two row-major tensors of one kind have in common at each index. */
void braid_copy_common(const braid_tensor_v2 *tensor, void *to, const int64_t *to_shape,
                       const void *from, const int64_t *from_shape);

/* The `parallel_for` of braid_env, over OpenMP. */
void braid_parallel_for(const braid_env *env, braid_body body, void *ctx, int64_t n);

/* The `post` and `wait` of braid_env. */
void braid_post(int64_t *counter, int64_t count);
void braid_wait(int64_t *counter, int64_t count);

/* How many threads OpenMP offers. */
int64_t braid_max_threads(void);

#endif /* BRAID_INTERNAL_H */
