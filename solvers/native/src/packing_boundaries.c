/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Packing without room to spare, from the first moment to the last. The items that are live at a
 * moment fill the arena, so their order determines their offsets. At the next moment, ending items
 * leave holes and beginning items fill them. Each hole is a block: adjacent items that end, and
 * items that begin with the same sum. The orders at the next moment are those of this one in which
 * the items of each block are together, and are replaced by its beginning items in any order; a
 * PQ-tree represents all these orders. So the blocks are the only choice, and if sizes differ much
 * there is often only one. A beam keeps those least likely to be equal by chance. At the last
 * moment any order will do, and from there back each order follows from the one after it.
 */
#include "boundary_sweep.h"

#include <stdlib.h>
#include <string.h>

/* Whether items are there for one stretch of time each and leave no room at any moment, and lie on
 * multiples of their alignment wherever they lie on each other. */
static bool fills(const braid_packing *p) {
  int64_t *room = calloc((size_t)p->sections + 1, sizeof *room), step = 1;
  if (!room || !p->flat || p->items > INT16_MAX) {
    free(room);
    return false;
  }
  bool full = true;
  for (int32_t i = 0; i < p->items && full; ++i) {
    int32_t first = p->in.begin[i], last = p->in.begin[i + 1] - 1;
    full = first <= last && p->extent[i] && p->fixed[i] < 0 &&
           p->in.item[last] - p->in.item[first] == last - first;
    for (int32_t at = first; at <= last; ++at)
      room[p->in.item[at]] += p->extent[i];
    step = p->alignment[i] > step ? p->alignment[i] : step;
  }
  for (int32_t i = 0; i < p->items && full; ++i)
    full = p->extent[i] % step == 0 && step % p->alignment[i] == 0;
  for (int32_t section = 0; section < p->sections && full; ++section)
    full = room[section] == p->capacity;
  free(room);
  return full;
}

/* The order of the tree `code`, as bases. */
static void stack(const boundary_sweep *s, const int16_t *code, int64_t *base) {
  int64_t top = 0;
  for (int32_t depth = 0;; ++code) {
    if (*code >= 0) {
      base[*code] = top;
      top += s->p->extent[*code];
    }
    depth += *code == END_NODE ? -1 : *code < 0;
    if (!depth)
      return;
  }
}

/* Goes back over a boundary with its blocks `steps`: orders the items before it by those after it.
 * `code` has the tree before it and room for that tree again. */
static void go_back_over(boundary_sweep *s, int16_t *code, const int32_t *steps, int32_t count,
                         int64_t *key, int64_t *base) {
  memcpy(key, base, (size_t)s->p->items * sizeof *key);
  for (int32_t k = 0; k < count; ++k) {
    const block_step *own = &s->steps[steps[k]];
    int64_t least = INT64_MAX;
    for (int32_t i = 0; i < s->at.count[1]; ++i)
      if (small_set_has(own->side[1], i) && base[s->sides[1][i]] < least)
        least = base[s->sides[1][i]];
    for (int32_t i = 0; i < s->at.count[0]; ++i)
      if (small_set_has(own->side[0], i))
        key[s->sides[0][i]] = least;
    int32_t root = sweep_read_with(s, code, own->side, true);
    tree_write(&s->tree, root, code);
  }
  int32_t root = tree_read(&s->tree, code);
  tree_sort(&s->tree, root, key);
  tree_write(&s->tree, root, code);
  stack(s, code, base);
}

/* Writes the bases to which the blocks up to `last` lead. Returns whether there is memory. */
static bool lay_out(boundary_sweep *s, int32_t last, int64_t *base) {
  int32_t moments = s->p->sections, size = tree_code_size(s->p->items), count = 0;
  for (int32_t step = last; step >= 0; step = s->steps[step].before)
    ++count;
  int32_t *steps = malloc(((size_t)count + 1) * sizeof *steps);
  int16_t *codes = malloc((size_t)moments * (size_t)size * sizeof *codes);
  int64_t *key = malloc((size_t)s->p->items * sizeof *key);
  if (steps && codes && key) {
    for (int32_t step = last, k = count; step >= 0; step = s->steps[step].before)
      steps[--k] = step;
    sweep_write_first(s, codes);
    int32_t done = 0;
    for (int32_t moment = 1; moment < moments; ++moment) {
      int16_t *code = codes + (size_t)moment * (size_t)size;
      memcpy(code, code - size, (size_t)size * sizeof *code);
      sweep_go_to(s, moment);
      for (; done < count && s->steps[steps[done]].moment == moment; ++done)
        tree_write(&s->tree, sweep_read_with(s, code, s->steps[steps[done]].side, false), code);
    }
    stack(s, codes + (size_t)(moments - 1) * (size_t)size, base);
    for (int32_t moment = moments - 1; moment > 0; --moment) {
      int32_t after = done;
      while (done && s->steps[steps[done - 1]].moment == moment)
        --done;
      sweep_go_to(s, moment);
      go_back_over(s, codes + (size_t)(moment - 1) * (size_t)size, steps + done, after - done, key,
                   base);
    }
  }
  bool has_memory = steps && codes && key;
  free(steps);
  free(codes);
  free(key);
  return has_memory;
}

int32_t braid_pack_by_boundaries(const braid_packing *packing, int32_t width, int32_t backwards,
                                 double freedom, uint64_t seed, double seconds, int64_t *base) {
  if (!fills(packing))
    return BRAID_PACKING_CUT;
  boundary_sweep s;
  bool has_memory = sweep_open(&s, packing, width, backwards, seconds);
  s.freedom = freedom;
  s.random = seed | 1;
  bool goes_on = has_memory;
  for (int32_t moment = 1; goes_on && moment < packing->sections; ++moment)
    goes_on = sweep_pass(&s, moment);
  if (goes_on)
    has_memory = lay_out(&s, s.orders[0].step, base);
  has_memory &= !s.clock.out_of_memory && !s.blocks.out_of_memory;
  sweep_close(&s);
  return !has_memory ? BRAID_OUT_OF_MEMORY : goes_on ? BRAID_PACKING_FOUND : BRAID_PACKING_CUT;
}
