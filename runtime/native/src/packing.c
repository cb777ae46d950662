/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Where the buffers of an arena lie. In the order of time is quick, and mostly as good as can be;
 * where it is not, the largest come first. */
#include "plans.h"

#include <stdlib.h>
#include <string.h>

/* An order by size is tried for so many pairs of buffers that are live at one time, for each buffer
 * and for each of so many more: then packing takes no more than 0.2 ms, and 0.2 us for each buffer.
 */
enum { PAIRS_EACH = 4, MORE_BUFFERS = 1000 };

/* An arena that has this part more than is live at once is good. */
enum { NEAR_ENOUGH = 50 };

/* ---- Lifetimes ---- */

typedef struct key {
  int64_t step;
  int64_t number;
} key;

static int compare_keys(const void *left, const void *right) {
  const key *a = left, *b = right;
  if (a->step != b->step)
    return a->step < b->step ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

/* Counts the pairs of buffers that are live at one time, and adds the pairs of each to `counts`;
 * the second time, with memory for them, lists them, and moves the starts to the ends. `live` has
 * room for all buffers. Stops where they are too many. */
static int64_t find_pairs(const braid_lifetimes *own, int32_t *live, int64_t *counts,
                          int32_t *others) {
  int64_t live_count = 0, pairs = 0, most = PAIRS_EACH * (own->count + MORE_BUFFERS);
  for (int64_t i = 0; i < own->count && pairs <= most; ++i) {
    int32_t number = own->by_first[i];
    int64_t kept = 0;
    for (int64_t k = 0; k < live_count; ++k)
      if (own->buffers[live[k]].last >= own->buffers[number].first)
        live[kept++] = live[k];
    for (int64_t k = 0; k < kept; ++k) {
      if (others != NULL) {
        others[counts[number]] = live[k];
        others[counts[live[k]]] = number;
      }
      ++counts[number];
      ++counts[live[k]];
    }
    pairs += kept;
    live[kept] = number;
    live_count = kept + 1;
  }
  return pairs <= most ? pairs : -1;
}

/* False without memory. */
static bool list_others(braid_lifetimes *own) {
  size_t count = (size_t)own->count;
  int32_t *live = malloc((count + 1) * sizeof *live);
  int64_t *ends = calloc(count + 1, sizeof *ends);
  own->starts = calloc(count + 1, sizeof *own->starts);
  bool has_room = live != NULL && ends != NULL && own->starts != NULL;
  int64_t pairs = has_room ? find_pairs(own, live, ends, NULL) : -1;
  if (pairs >= 0) {
    own->others = malloc((size_t)(2 * pairs + 1) * sizeof *own->others);
    has_room = own->others != NULL;
  }
  if (own->others != NULL) {
    int64_t most = PAIRS_EACH * (own->count + MORE_BUFFERS);
    int64_t orders = pairs > 0 ? most / pairs : BRAID_SIZE_ORDERS;
    own->orders = orders < BRAID_SIZE_ORDERS ? orders : BRAID_SIZE_ORDERS;
    for (size_t i = 0; i < count; ++i)
      own->starts[i + 1] = own->starts[i] + ends[i];
    memcpy(ends, own->starts, count * sizeof *ends);
    find_pairs(own, live, ends, own->others);
  }
  free(live);
  free(ends);
  return has_room;
}

bool braid_lifetimes_read(braid_lifetimes *lifetimes, int64_t count,
                          const braid_buffer_v1 *buffers) {
  size_t size = (size_t)count;
  key *keys = malloc((size + 1) * sizeof *keys);
  int32_t *orders = malloc((2 * size + 1) * sizeof *orders);
  if (keys == NULL || orders == NULL) {
    free(keys);
    free(orders);
    return false;
  }
  *lifetimes = (braid_lifetimes){count, buffers, orders, orders + count, NULL, NULL, 0};
  for (int end = 0; end < 2; ++end) {
    for (int64_t i = 0; i < count; ++i)
      keys[i] = (key){end ? buffers[i].last : buffers[i].first, i};
    qsort(keys, size, sizeof *keys, compare_keys);
    for (int64_t i = 0; i < count; ++i)
      orders[end * count + i] = (int32_t)keys[i].number;
  }
  free(keys);
  if (list_others(lifetimes))
    return true;
  braid_lifetimes_free(lifetimes);
  return false;
}

void braid_lifetimes_free(braid_lifetimes *lifetimes) {
  free(lifetimes->by_first);
  free(lifetimes->others);
  free(lifetimes->starts);
}

/* ---- Packing ---- */

static int compare_placements(const void *left, const void *right) {
  const braid_placement *a = left, *b = right;
  if (a->rank != b->rank)
    return a->rank > b->rank ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

void braid_sort_placements(braid_placement *placements, int64_t count) {
  if (count > 1)
    qsort(placements, (size_t)count, sizeof *placements, compare_placements);
}

size_t braid_packing_bytes(int64_t count) {
  size_t by_time = braid_time_packing_bytes(count);
  size_t by_size = braid_size_packing_bytes(count) + (size_t)count * sizeof(int64_t);
  return by_time > by_size ? by_time : by_size;
}

bool braid_pack(const braid_lifetimes *lifetimes, const int64_t *bytes, void *room,
                int64_t *offsets, int64_t *total) {
  int64_t least, *others = room, other_total;
  void *rest = others + lifetimes->count;
  bool packed = braid_pack_by_time(lifetimes, bytes, room, offsets, total, &least);
  for (int order = 0; order < lifetimes->orders; ++order) {
    if (packed && *total - least <= least / NEAR_ENOUGH)
      break;
    if (!braid_pack_by_size(lifetimes, bytes, order, rest, others, &other_total) ||
        (packed && other_total >= *total))
      continue;
    if (lifetimes->count > 0)
      memcpy(offsets, others, (size_t)lifetimes->count * sizeof *offsets);
    *total = other_total;
    packed = true;
  }
  return packed;
}
