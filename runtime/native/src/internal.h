/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef BRAID_INTERNAL_H
#define BRAID_INTERNAL_H

#include "braid/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A file mapped for reading, and where its sections lie in it. */
typedef struct braid_container {
  const uint8_t *base;
  size_t size;
  const void *code;
  size_t code_size;
  const void *weights; /* NULL when the model has none */
} braid_container;

struct braid_model {
  const braid_model_v1 *descriptor;
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

/* The `parallel_for` of braid_env, over OpenMP. */
void braid_parallel_for(const braid_env *env, braid_body body, void *ctx, int64_t n);

/* How many threads OpenMP offers. */
int64_t braid_max_threads(void);

#endif /* BRAID_INTERNAL_H */
