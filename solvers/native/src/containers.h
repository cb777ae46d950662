/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Queues of numbers and sets of values.
 */
#ifndef BRAID_CONTAINERS_H
#define BRAID_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers that come at `tail` and leave at `head`. All 0 is an empty one. */
typedef struct {
  int64_t *item;
  int32_t head;
  int32_t tail;
  int32_t capacity;
} queue;

/* Room for `count` numbers at the end, which the caller writes. Returns NULL if there is no memory;
 * then sets `*out_of_memory` and leaves the queue as it is. */
int64_t *queue_extend(queue *q, int32_t count, bool *out_of_memory);

static inline void queue_push(queue *q, int64_t number, bool *out_of_memory) {
  int64_t *end = q->tail < q->capacity ? q->item + q->tail++ : queue_extend(q, 1, out_of_memory);
  if (end)
    *end = number;
}

static inline int64_t queue_pop(queue *q) { return q->item[q->head++]; }

static inline int32_t queue_count(const queue *q) { return q->tail - q->head; }

static inline bool queue_is_empty(const queue *q) { return q->head == q->tail; }

static inline void queue_clear(queue *q) { q->head = q->tail = 0; }

/* Some of the values, in any order. */
typedef struct {
  int32_t *value;
  int32_t *index; /* in `value`, -1 for a value that is not in the set */
  int32_t count;
} value_set;

/* An empty set of values below `values`; returns whether there is memory. */
bool value_set_open(value_set *set, int32_t values);
void value_set_close(value_set *set);

static inline bool value_set_has(const value_set *set, int32_t v) { return set->index[v] >= 0; }

static inline void value_set_add(value_set *set, int32_t v) {
  set->index[v] = set->count;
  set->value[set->count++] = v;
}

static inline void value_set_drop(value_set *set, int32_t v) {
  int32_t last = set->value[--set->count];
  set->value[set->index[v]] = last;
  set->index[last] = set->index[v];
  set->index[v] = -1;
}

static inline void value_set_clear(value_set *set) {
  while (set->count)
    set->index[set->value[--set->count]] = -1;
}

#endif
