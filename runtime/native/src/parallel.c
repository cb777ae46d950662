/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"

#include <omp.h>

int64_t braid_max_threads(void) { return omp_get_max_threads(); }

void braid_parallel_for(const braid_env *env, braid_body body, void *ctx, int64_t n) {
  int64_t wanted = env->threads < n ? env->threads : n;
  if (wanted <= 1) {
    if (n > 0)
      body(ctx, 0, n);
    return;
  }
#pragma omp parallel num_threads((int)wanted)
  {
    /* OpenMP may grant fewer threads than asked for, so the split goes by what was granted. */
    int64_t team = omp_get_num_threads();
    int64_t rank = omp_get_thread_num();
    int64_t share = n / team;
    int64_t rest = n % team; /* the first `rest` threads take one iteration more */
    int64_t begin = rank * share + (rank < rest ? rank : rest);
    int64_t end = begin + share + (rank < rest ? 1 : 0);
    if (begin < end)
      body(ctx, begin, end);
  }
}
