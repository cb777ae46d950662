/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Places the buffers of an arena: the largest first, each in the smallest gap that is large
 * enough between those of its time that have a place (Pisarchyk and Lee, "Efficient memory
 * management for deep neural net inference", 2020).
 */
#include "plans.h"

#include <stdlib.h>

/* Up to so many are sorted by insertion. */
enum { FEW = 48 };

typedef struct span {
  int64_t begin, end;
} span;

static int compare_spans(const void *left, const void *right) {
  const span *a = left, *b = right;
  return (a->begin > b->begin) - (a->begin < b->begin);
}

static void sort_spans(span *spans, int64_t count) {
  if (count > FEW) {
    qsort(spans, (size_t)count, sizeof *spans, compare_spans);
    return;
  }
  for (int64_t i = 1; i < count; ++i) {
    span own = spans[i];
    int64_t at = i;
    for (; at > 0 && spans[at - 1].begin > own.begin; --at)
      spans[at] = spans[at - 1];
    spans[at] = own;
  }
}

/* Returns the offset of so many bytes between spans, which may overlap. */
static int64_t best_offset(const span *spans, int64_t count, int64_t bytes) {
  int64_t best = -1, best_gap = INT64_MAX, end = 0;
  for (int64_t i = 0; i < count; ++i) {
    int64_t gap = spans[i].begin - end;
    if (gap >= bytes && gap < best_gap) {
      best = end;
      best_gap = gap;
    }
    end = spans[i].end > end ? spans[i].end : end;
  }
  return best >= 0 ? best : end;
}

/* The sort key of a buffer with these bytes that is live for so many steps; a square root is
 * replaced by its square, which sorts equally. */
static double rank_of(int order, double bytes, double steps) {
  return order == 0 ? bytes * bytes * steps : order == 1 ? bytes : bytes * steps;
}

size_t braid_size_packing_bytes(int64_t count) {
  return (size_t)count * (sizeof(span) + sizeof(braid_placement));
}

bool braid_pack_by_size(const braid_lifetimes *lifetimes, const int64_t *bytes, int order,
                        void *room, int64_t *offsets, int64_t *total) {
  int64_t count = lifetimes->count, waiting = 0;
  span *spans = room;
  braid_placement *placements = (braid_placement *)(spans + count);
  for (int64_t i = 0; i < count; ++i) {
    offsets[i] = bytes[i] > 0 ? -1 : 0;
    double steps = (double)(lifetimes->buffers[i].last - lifetimes->buffers[i].first) + 1;
    if (bytes[i] > 0)
      placements[waiting++] = (braid_placement){rank_of(order, (double)bytes[i], steps), i};
  }
  braid_sort_placements(placements, waiting);
  *total = 0;
  for (int64_t i = 0; i < waiting; ++i) {
    int64_t number = placements[i].number, end, span_count = 0;
    for (int64_t k = lifetimes->starts[number]; k < lifetimes->starts[number + 1]; ++k) {
      int32_t other = lifetimes->others[k];
      if (offsets[other] >= 0 && bytes[other] > 0)
        spans[span_count++] = (span){offsets[other], offsets[other] + bytes[other]};
    }
    sort_spans(spans, span_count);
    offsets[number] = best_offset(spans, span_count, bytes[number]);
    if (__builtin_add_overflow(offsets[number], bytes[number], &end))
      return false;
    *total = end > *total ? end : *total;
  }
  return true;
}
