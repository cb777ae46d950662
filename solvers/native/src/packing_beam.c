/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Beam search for packings. Where little room is to spare, tops that are level with what is beside
 * them are rarely so by chance.
 */
#include "partial_packing.h"

#include <stdlib.h>
#include <string.h>

/* A way to go on from a partial packing of the layer before. */
typedef struct {
  uint64_t tie;
  int32_t steps;
  int32_t parent;
  open_item next;
} way;

typedef struct {
  packer s;
  int32_t width;
  uint64_t random;
  /* By partial packing of a layer, two layers: */
  int64_t *lowest[2];
  bool *placed[2];
  int64_t *skyline[2]; /* by section */
  fingerprint *prints; /* of a layer */
  int32_t count;
  way *ways;
  int64_t way_count;
  int64_t way_capacity;
  int32_t *members; /* scratch */
  open_item *open;  /* scratch */
} beam;

/* How many more steps the skyline has when an item is placed. */
static int32_t steps_added(const beam *b, const int64_t *skyline, int32_t i, int64_t base) {
  const braid_packing *p = b->s.p;
  int32_t steps = 0;
  for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at) {
    int32_t section = p->in.item[at];
    int64_t top = base + p->high[at];
    bool after_own = at > p->in.begin[i] && p->in.item[at - 1] == section - 1;
    bool before_own = at + 1 < p->in.begin[i + 1] && p->in.item[at + 1] == section + 1;
    if (section) {
      steps -= skyline[section - 1] != skyline[section];
      steps += (after_own ? base + p->high[at - 1] : skyline[section - 1]) != top;
    }
    if (section + 1 < p->sections && !before_own) {
      steps -= skyline[section + 1] != skyline[section];
      steps += skyline[section + 1] != top;
    }
  }
  return steps;
}

static bool add_way(beam *b, way own) {
  if (b->way_count == b->way_capacity) {
    int64_t capacity = 2 * b->way_capacity + 1024;
    way *ways = realloc(b->ways, (size_t)capacity * sizeof *ways);
    if (!ways)
      return false;
    b->ways = ways;
    b->way_capacity = capacity;
  }
  b->ways[b->way_count++] = own;
  return true;
}

static int compare_ways(const void *left, const void *right) {
  const way *a = left, *b = right;
  if (a->steps != b->steps)
    return a->steps < b->steps ? -1 : 1;
  return a->tie < b->tie ? -1 : a->tie > b->tie;
}

static uint64_t next_tie(beam *b) {
  b->random ^= b->random >> 12;
  b->random ^= b->random << 25;
  b->random ^= b->random >> 27;
  return b->random * 0x2545f4914f6cdd1dull;
}

static bool is_covered(const packer *s, int32_t i) {
  for (int32_t k = s->p->others.begin[i]; k < s->p->others.begin[i + 1]; ++k)
    if (!s->placed[s->p->others.item[k]])
      return true;
  return false;
}

/* Where packing `place` of layer `layer`, which has `steps`, can be completed as far as is easily
 * seen, notes the ways to go on. Returns whether it can. */
static bool expand(beam *b, int32_t layer, int32_t place, const open_item *last, int32_t steps) {
  packer *s = &b->s;
  int32_t items = s->p->items, left = 0;
  s->lowest = b->lowest[layer] + (size_t)place * (size_t)items;
  s->placed = b->placed[layer] + (size_t)place * (size_t)items;
  for (int32_t k = 0; k < items; ++k)
    if (!s->placed[b->open[k].item])
      b->members[left++] = b->open[k].item;
  int64_t end;
  open_item *open = b->open + items;
  if (!sort_open(s, b->members, left, last, open, &end) || !sections_fit(s, open, left))
    return false;
  open_item nothing = {0, 0, false};
  fingerprint own = fingerprint_of(s, open, left, &nothing);
  for (int32_t other = 0; other < place; ++other)
    if (b->prints[other].first == own.first && b->prints[other].second == own.second)
      return false;
  b->prints[place] = own;
  const int64_t *skyline = b->skyline[layer] + (size_t)place * (size_t)s->p->sections;
  for (int32_t k = 0; k < left && open[k].lowest < end; ++k) {
    if (open[k].passed)
      continue;
    int32_t after = steps + steps_added(b, skyline, open[k].item, open[k].lowest);
    if (!add_way(b, (way){next_tie(b), after, place, open[k]})) {
      s->out_of_memory = true;
      return false;
    }
    if (!is_covered(s, open[k].item))
      break;
  }
  return true;
}

/* Makes the next layer of the best ways out of this one. */
static void advance(beam *b, int32_t layer) {
  const braid_packing *p = b->s.p;
  size_t items = (size_t)p->items, sections = (size_t)p->sections;
  int64_t count = b->way_count;
  qsort(b->ways, (size_t)count, sizeof *b->ways, compare_ways);
  way *ways = malloc((size_t)(count + 1) * sizeof *ways);
  if (!ways) {
    b->s.out_of_memory = true;
    return;
  }
  memcpy(ways, b->ways, (size_t)count * sizeof *ways);
  b->way_count = 0;
  int32_t to = 1 - layer, made = 0;
  for (int64_t k = 0; k < count && made < b->width && !b->s.out_of_memory; ++k) {
    if (k % 64 == 0 && packer_is_late(&b->s)) {
      made = 0;
      break;
    }
    size_t from = (size_t)ways[k].parent, own = (size_t)made;
    memcpy(b->lowest[to] + own * items, b->lowest[layer] + from * items, items * sizeof(int64_t));
    memcpy(b->placed[to] + own * items, b->placed[layer] + from * items, items * sizeof(bool));
    int64_t *skyline = b->skyline[to] + own * sections;
    memcpy(skyline, b->skyline[layer] + from * sections, sections * sizeof(int64_t));
    b->s.lowest = b->lowest[to] + own * items;
    b->s.placed = b->placed[to] + own * items;
    b->s.count = 0;
    b->s.trail_count = 0;
    bool covered;
    int32_t i = ways[k].next.item;
    place(&b->s, i, ways[k].next.lowest, &covered);
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      skyline[p->in.item[at]] = ways[k].next.lowest + p->high[at];
    made += expand(b, to, made, &ways[k].next, ways[k].steps);
  }
  free(ways);
  b->count = made;
}

static bool open_beam(beam *b, const braid_packing *p, int32_t width) {
  size_t items = (size_t)p->items + 1, sections = (size_t)p->sections + 1, many = (size_t)width;
  for (int layer = 0; layer < 2; ++layer) {
    b->lowest[layer] = calloc(items * many, sizeof(int64_t));
    b->placed[layer] = calloc(items * many, sizeof(bool));
    b->skyline[layer] = calloc(sections * many, sizeof(int64_t));
    if (!b->lowest[layer] || !b->placed[layer] || !b->skyline[layer])
      return false;
  }
  b->prints = calloc(many, sizeof *b->prints);
  b->members = calloc(items, sizeof *b->members);
  b->open = calloc(2 * items, sizeof *b->open);
  return b->prints && b->members && b->open;
}

static void close_beam(beam *b) {
  for (int layer = 0; layer < 2; ++layer) {
    free(b->lowest[layer]);
    free(b->placed[layer]);
    free(b->skyline[layer]);
  }
  free(b->prints);
  free(b->members);
  free(b->open);
  free(b->ways);
}

int32_t braid_pack_by_beam(const braid_packing *packing, const int32_t *rank, int32_t width,
                           uint64_t seed, double seconds, int64_t *base) {
  beam b = {.width = width, .random = seed | 1};
  bool has_memory = packer_open(&b.s, packing, rank, seconds) & open_beam(&b, packing, width);
  int64_t *lowest = b.s.lowest;
  bool *placed = b.s.placed;
  int32_t items = packing->items, layer = 0, found = BRAID_PACKING_CUT;
  if (has_memory) {
    for (int32_t i = 0; i < items; ++i)
      b.open[rank[i]].item = i;
    open_item first = {-1, 0, false};
    b.count = expand(&b, layer, 0, &first, 0);
    for (int32_t done = 0; done < items && b.count && !b.s.out_of_memory; ++done) {
      advance(&b, layer);
      layer = 1 - layer;
    }
    if (b.count && !b.s.out_of_memory) {
      memcpy(base, b.lowest[layer], (size_t)items * sizeof *base);
      found = BRAID_PACKING_FOUND;
    }
  }
  bool out_of_memory = !has_memory || b.s.out_of_memory;
  b.s.lowest = lowest;
  b.s.placed = placed;
  packer_close(&b.s);
  close_beam(&b);
  return out_of_memory ? BRAID_OUT_OF_MEMORY : found;
}
