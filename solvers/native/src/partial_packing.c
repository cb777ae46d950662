/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "partial_packing.h"

#include "clock.h"

#include <stdlib.h>

bool packer_open(packer *s, const braid_packing *p, const int32_t *rank, double seconds) {
  *s = (packer){.p = p, .rank = rank, .end = clock_seconds() + seconds};
  size_t items = (size_t)p->items + 1, sections = (size_t)p->sections + 2;
  s->lowest = calloc(items, sizeof *s->lowest);
  s->placed = calloc(items, sizeof *s->placed);
  s->order = calloc(items, sizeof *s->order);
  s->top = calloc(sections, sizeof *s->top);
  s->total = calloc(sections, sizeof *s->total);
  s->crossing = calloc(sections, sizeof *s->crossing);
  return s->lowest && s->placed && s->order && s->top && s->total && s->crossing;
}

void packer_close(packer *s) {
  free(s->lowest);
  free(s->placed);
  free(s->order);
  free(s->top);
  free(s->total);
  free(s->crossing);
  free(s->trail);
}

bool packer_is_late(const packer *s) { return clock_seconds() > s->end; }

static int64_t align_up(int64_t base, int64_t alignment) {
  int64_t over = base % alignment;
  return over ? base + alignment - over : base;
}

static int64_t earliest(const packer *s, int32_t i) {
  int64_t fixed = s->p->fixed[i];
  return fixed > s->lowest[i] ? fixed : s->lowest[i];
}

/* In all remaining packings, an item that was passed over lies higher: on top of an item that is
 * not placed yet. At least one of these begins below the end that the item would have had. */
static bool raise_passed(const packer *s, open_item *open, int64_t from) {
  const braid_packing *p = s->p;
  int32_t i = open->item;
  int64_t end = s->lowest[i] + p->extent[i], least = INT64_MAX;
  bool in_the_way = false;
  for (int32_t k = p->others.begin[i]; k < p->others.begin[i + 1]; ++k) {
    int32_t other = p->others.item[k];
    if (s->placed[other])
      continue;
    int64_t base = earliest(s, other);
    base = base < from ? from : base;
    in_the_way |= base < end;
    int64_t above = base + p->under[k];
    least = above < least ? above : least;
  }
  if (!in_the_way)
    return false;
  open->lowest = align_up(least, p->alignment[i]);
  open->passed = true;
  return true;
}

bool sort_open(const packer *s, const int32_t *members, int32_t count, const open_item *last,
               open_item *open, int64_t *end) {
  const braid_packing *p = s->p;
  *end = INT64_MAX;
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = members[k];
    open_item own = {earliest(s, i), i, false};
    bool is_free = p->fixed[i] < 0;
    if (!is_free && s->lowest[i] > p->fixed[i])
      return false;
    int64_t own_end = own.lowest + p->extent[i];
    if (precedes(s, &own, last) && (!is_free || !raise_passed(s, &own, last->lowest)))
      return false;
    if (own.lowest + p->extent[i] > p->capacity)
      return false;
    if (is_free && own_end < *end)
      *end = own_end;
    int32_t at = k;
    for (; at && precedes(s, &own, &open[at - 1]); --at)
      open[at] = open[at - 1];
    open[at] = own;
  }
  return true;
}

static bool sections_fit_above_first(packer *s, const open_item *open, int32_t count) {
  const braid_packing *p = s->p;
  for (int32_t k = 0; k < count; ++k)
    for (int32_t at = p->in.begin[open[k].item]; at < p->in.begin[open[k].item + 1]; ++at) {
      s->top[p->in.item[at]] = INT64_MAX;
      s->total[p->in.item[at]] = 0;
    }
  for (int32_t k = 0; k < count; ++k)
    for (int32_t at = p->in.begin[open[k].item]; at < p->in.begin[open[k].item + 1]; ++at) {
      int64_t begin = open[k].lowest + p->low[at], *top = &s->top[p->in.item[at]];
      int64_t *total = &s->total[p->in.item[at]];
      *top = begin < *top ? begin : *top;
      *total += p->high[at] - p->low[at];
      if (*top + *total > p->capacity)
        return false;
    }
  return true;
}

bool sections_fit(packer *s, const open_item *open, int32_t count) {
  const braid_packing *p = s->p;
  if (!p->flat)
    return sections_fit_above_first(s, open, count);
  for (int32_t k = 0; k < count; ++k)
    for (int32_t at = p->in.begin[open[k].item]; at < p->in.begin[open[k].item + 1]; ++at)
      s->top[p->in.item[at]] = 0;
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = open[k].item;
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at) {
      int64_t begin = open[k].lowest + p->low[at], *top = &s->top[p->in.item[at]];
      *top = (*top < begin ? begin : *top) + p->high[at] - p->low[at];
      if (*top > p->capacity)
        return false;
    }
  }
  return true;
}

/* The finalizer of G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators"
 * (OOPSLA 2014). */
static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

fingerprint fingerprint_of(const packer *s, const open_item *open, int32_t count,
                           const open_item *last) {
  uint64_t from = mix((uint64_t)last->lowest * 2 + 1) + (uint64_t)s->rank[last->item];
  fingerprint f = {mix(from), mix(from ^ 0x9e3779b97f4a7c15ull)};
  for (int32_t k = 0; k < count; ++k) {
    uint64_t own = mix((uint64_t)open[k].item + 1) ^ (uint64_t)s->lowest[open[k].item];
    f.first += mix(own);
    f.second += mix(own * 0xff51afd7ed558ccdull + 0x2545f4914f6cdd1dull);
  }
  return f;
}

static bool push_raised(packer *s, int32_t item) {
  if (s->trail_count == s->trail_capacity) {
    int64_t capacity = 2 * s->trail_capacity + 1024;
    raised *trail = realloc(s->trail, (size_t)capacity * sizeof *trail);
    if (!trail)
      return false;
    s->trail = trail;
    s->trail_capacity = capacity;
  }
  s->trail[s->trail_count++] = (raised){item, s->lowest[item]};
  return true;
}

void place(packer *s, int32_t i, int64_t base, bool *covered) {
  const braid_packing *p = s->p;
  *covered = false;
  if (!push_raised(s, i))
    s->out_of_memory = true;
  else
    s->lowest[i] = base;
  s->placed[i] = true;
  s->order[s->count++] = i;
  for (int32_t k = p->others.begin[i]; k < p->others.begin[i + 1]; ++k) {
    int32_t other = p->others.item[k];
    if (s->placed[other])
      continue;
    *covered = true;
    int64_t above = align_up(base + p->over[k], p->alignment[other]);
    if (above <= s->lowest[other])
      continue;
    if (!push_raised(s, other))
      s->out_of_memory = true;
    else
      s->lowest[other] = above;
  }
}

void undo(packer *s, int32_t count, int64_t trail_count) {
  while (s->count > count)
    s->placed[s->order[--s->count]] = false;
  while (s->trail_count > trail_count) {
    raised *last = &s->trail[--s->trail_count];
    s->lowest[last->item] = last->lowest;
  }
}
