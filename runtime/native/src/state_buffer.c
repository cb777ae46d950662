/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "state_buffer.h"

#include <stdlib.h>

enum { ALIGN = 64 };

braid_state_buffer *braid_state_buffer_create(size_t bytes, size_t taken) {
  braid_state_buffer *buffer = calloc(1, sizeof *buffer);
  if (buffer == NULL)
    return NULL;
  if (posix_memalign(&buffer->data, ALIGN, bytes > 0 ? bytes : 1) != 0) {
    free(buffer);
    return NULL;
  }
  buffer->bytes = bytes;
  atomic_init(&buffer->taken, taken);
  atomic_init(&buffer->references, 1);
  return buffer;
}

void braid_state_buffer_retain(braid_state_buffer *buffer) {
  atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
}

void braid_state_buffer_release(braid_state_buffer *buffer) {
  if (buffer == NULL || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) > 1)
    return;
  free(buffer->data);
  free(buffer);
}

bool braid_state_buffer_take(braid_state_buffer *buffer, size_t before, size_t end) {
  return end <= buffer->bytes && atomic_compare_exchange_strong(&buffer->taken, &before, end);
}
