/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "levels.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_UNITS = 1 << 16 /* sums above it are not told apart */ };

int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Whether an item is in a section; its sections ascend. */
static bool is_in(const braid_packing *p, int32_t i, int32_t section) {
  int32_t low = p->in.begin[i], high = p->in.begin[i + 1];
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (p->in.item[middle] < section)
      low = middle + 1;
    else
      high = middle;
  }
  return low < p->in.begin[i + 1] && p->in.item[low] == section;
}

/* Lists the items of each section that are in the neighbouring section `beside`, or are not. */
static void list_items(const braid_packing *p, int32_t beside, bool in, int32_t *begin,
                       int32_t *item) {
  for (int32_t i = 0; i < p->items; ++i)
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      begin[p->in.item[at]] += is_in(p, i, p->in.item[at] + beside) == in;
  for (int32_t section = 0; section < p->sections; ++section)
    begin[section + 1] += begin[section];
  for (int32_t i = p->items - 1; i >= 0; --i)
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      if (is_in(p, i, p->in.item[at] + beside) == in)
        item[--begin[p->in.item[at]]] = i;
}

bool levels_open(levels *v, const braid_packing *p) {
  *v = (levels){.p = p};
  for (int32_t i = 0; i < p->items; ++i)
    v->unit = common_divisor(common_divisor(v->unit, p->extent[i]), p->alignment[i]);
  int64_t units = v->unit ? p->capacity / v->unit + 1 : 1;
  if (units > MOST_UNITS)
    v->unit = 0;
  size_t words = v->unit ? (size_t)units / 64 + 2 : 1;
  size_t sections = (size_t)p->sections + 2, total = (size_t)p->in.begin[p->items] + 1;
  v->sums[0] = malloc(words * sizeof **v->sums);
  v->sums[1] = malloc(words * sizeof **v->sums);
  v->lists = calloc(3 * (sections + total), sizeof *v->lists);
  if (!v->sums[0] || !v->sums[1] || !v->lists)
    return false;
  braid_lists *kinds[] = {&v->ending, &v->beginning, &v->shared};
  for (int kind = 0; kind < 3; ++kind) {
    int32_t *begin = v->lists + kind * (sections + total), *item = begin + sections;
    list_items(p, kind == 1 ? -1 : 1, kind == 2, begin, item);
    *kinds[kind] = (braid_lists){begin, item};
  }
  return true;
}

void levels_close(levels *v) {
  free(v->sums[0]);
  free(v->sums[1]);
  free(v->lists);
}

/* Adds s + `units` to the set `sums` for each of its members s. */
static void add_shifted(uint64_t *sums, int64_t count, int64_t units) {
  int64_t words = count / 64 + 1, whole = units / 64;
  int bits = (int)(units % 64);
  for (int64_t k = words - 1; k >= whole; --k) {
    uint64_t shifted = sums[k - whole] << bits;
    if (bits && k > whole)
      shifted |= sums[k - whole - 1] >> (64 - bits);
    sums[k] |= shifted;
  }
}

/* The sums, below `count` units, of some of the items of `apart` that are not placed, with up to
 * `spare` units more. */
static void sum_up(const levels *v, const braid_lists *apart, int32_t section, int64_t count,
                   int64_t spare, const uint8_t *placed, uint64_t *sums) {
  memset(sums, 0, ((size_t)count / 64 + 1) * sizeof *sums);
  sums[0] = 1;
  for (int32_t k = apart->begin[section]; k < apart->begin[section + 1]; ++k) {
    int64_t units = v->p->extent[apart->item[k]] / v->unit;
    if (!placed[apart->item[k]] && units < count)
      add_shifted(sums, count, units);
  }
  for (int64_t wide = 1; spare > 0; spare -= wide, wide *= 2)
    add_shifted(sums, count, wide < spare ? wide : spare);
}

/* The least base that what is not placed of the items that are in both can have. */
static int64_t least_shared(const levels *v, int32_t section, const int64_t *floor,
                            const int64_t *spare, const uint8_t *placed) {
  int64_t here = floor[section], next = floor[section + 1], top = here > next ? here : next;
  bool here_is_low = here < next;
  int32_t low = section + !here_is_low, high = section + here_is_low;
  int64_t step = top - floor[low];
  if (!v->unit || spare[low] >= step)
    return top;
  int64_t count = (v->p->capacity - top) / v->unit + 1, far = step / v->unit;
  const braid_lists *apart[] = {&v->beginning, &v->ending};
  sum_up(v, apart[here_is_low], low, count + far, spare[low] / v->unit, placed, v->sums[0]);
  sum_up(v, apart[!here_is_low], high, count, spare[high] / v->unit, placed, v->sums[1]);
  for (int64_t k = 0; k < count; ++k)
    if (v->sums[1][k / 64] >> k % 64 & v->sums[0][(k + far) / 64] >> (k + far) % 64 & 1)
      return top + k * v->unit;
  return INT64_MAX;
}

bool raise_shared(const levels *v, int32_t section, const int64_t *floor, const int64_t *spare,
                  const uint8_t *placed, int64_t *lowest) {
  const braid_packing *p = v->p;
  if (section < 0 || section + 1 >= p->sections)
    return true;
  int64_t least = -1;
  for (int32_t k = v->shared.begin[section]; k < v->shared.begin[section + 1]; ++k) {
    int32_t i = v->shared.item[k];
    if (placed[i])
      continue;
    if (least < 0)
      least = least_shared(v, section, floor, spare, placed);
    if (least > p->capacity - p->extent[i])
      return false;
    int64_t over = least % p->alignment[i], base = over ? least - over + p->alignment[i] : least;
    lowest[i] = base > lowest[i] ? base : lowest[i];
  }
  return true;
}
