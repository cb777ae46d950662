/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Memory of states, which sessions share: the first bytes of a buffer are taken, and never written
 * again.
 */
#ifndef BRAID_STATE_BUFFER_H
#define BRAID_STATE_BUFFER_H

#include "internal.h"

typedef struct braid_state_buffer {
  void *data; /* on a multiple of 64 */
  size_t bytes;
  atomic_size_t taken;
  atomic_int references;
} braid_state_buffer;

/* A buffer with one reference, `taken` bytes of which are used. NULL without memory. */
braid_state_buffer *braid_state_buffer_create(size_t bytes, size_t taken);

void braid_state_buffer_retain(braid_state_buffer *buffer);

/* NULL is allowed. */
void braid_state_buffer_release(braid_state_buffer *buffer);

/* Takes the bytes up to `end` if those up to `before` are taken; whether it did. If several threads
 * try, one of them succeeds. With the numbers exchanged it gives them back. */
bool braid_state_buffer_take(braid_state_buffer *buffer, size_t before, size_t end);

#endif
