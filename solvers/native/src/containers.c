/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "containers.h"

#include <stdlib.h>
#include <string.h>

int64_t *queue_extend(queue *q, int32_t count, bool *out_of_memory) {
  int32_t held = q->tail - q->head;
  if (q->tail + count > q->capacity) {
    /* At least half of it is to be free, so that moving the numbers is rare. */
    if (held + count > q->capacity / 2) {
      int32_t capacity = 2 * (held + count) + 64;
      int64_t *item = realloc(q->item, (size_t)capacity * sizeof *item);
      if (!item) {
        *out_of_memory = true;
        return NULL;
      }
      q->item = item;
      q->capacity = capacity;
    }
    memmove(q->item, q->item + q->head, (size_t)held * sizeof *q->item);
    q->head = 0;
    q->tail = held;
  }
  q->tail += count;
  return q->item + q->tail - count;
}

bool value_set_open(value_set *set, int32_t values) {
  size_t count = (size_t)values + 1;
  *set = (value_set){malloc(count * sizeof *set->value), malloc(count * sizeof *set->index), 0};
  if (!set->value || !set->index)
    return false;
  for (int32_t v = 0; v < values; ++v)
    set->index[v] = -1;
  return true;
}

void value_set_close(value_set *set) {
  free(set->value);
  free(set->index);
}
