/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "containers.h"

#include <stdlib.h>
#include <string.h>

void queue_push(queue *q, int64_t number, bool *out_of_memory) {
  if (q->tail == q->capacity) {
    int32_t count = q->tail - q->head;
    if (count > q->capacity / 2 || !q->capacity) {
      int32_t capacity = q->capacity ? 2 * q->capacity : 64;
      int64_t *item = realloc(q->item, (size_t)capacity * sizeof *item);
      if (!item) {
        *out_of_memory = true;
        return;
      }
      q->item = item;
      q->capacity = capacity;
    }
    memmove(q->item, q->item + q->head, (size_t)count * sizeof *q->item);
    q->head = 0;
    q->tail = count;
  }
  q->item[q->tail++] = number;
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
