/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "packing_layers.h"

#include "random_search.h"

#include <stdlib.h>
#include <string.h>

enum {
  DONE = 1 << 30, /* more items than there are */
  WEIGHTS = 11    /* a step scores from 1 to so much */
};

static layout layout_at(const beam *b, char *layer, int32_t place) {
  char *at = layer + (size_t)place * b->bytes;
  size_t items = (size_t)b->p->items, sections = (size_t)b->p->sections;
  layout l = {.lowest = (int64_t *)at};
  l.floor = l.lowest + items;
  l.spare = l.floor + sections;
  l.placed = (uint8_t *)(l.spare + sections);
  return l;
}

/* What the steps of the skyline score more when an item is placed. */
static int32_t steps_added(const beam *b, const int64_t *floor, int32_t i, int64_t base) {
  const braid_packing *p = b->p;
  int32_t steps = 0;
  for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at) {
    int32_t section = p->in.item[at];
    int64_t top = base + p->high[at];
    bool after_own = at > p->in.begin[i] && p->in.item[at - 1] == section - 1;
    bool before_own = at + 1 < p->in.begin[i + 1] && p->in.item[at + 1] == section + 1;
    if (section) {
      int64_t beside = after_own ? base + p->high[at - 1] : floor[section - 1];
      steps += b->weights[section] * ((beside != top) - (floor[section - 1] != floor[section]));
    }
    if (section + 1 < p->sections && !before_own) {
      bool was_step = floor[section + 1] != floor[section];
      steps += b->weights[section + 1] * ((floor[section + 1] != top) - was_step);
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
  if (a->score != b->score)
    return a->score < b->score ? -1 : 1;
  return a->tie < b->tie ? -1 : a->tie > b->tie;
}

static opening opening_of(const beam *b, const layout *l, int32_t section) {
  opening o = {INT64_MAX, INT64_MAX, 0};
  for (int32_t k = b->begin_of[section]; k < b->begin_of[section + 1]; ++k) {
    int32_t i = b->item_in[k];
    if (l->placed[i])
      continue;
    int64_t lowest = l->lowest[i];
    if (lowest < o.first) {
      o.second = o.first;
      o.first = lowest;
      o.count = 1;
    } else if (lowest == o.first) {
      ++o.count;
    } else if (lowest < o.second) {
      o.second = lowest;
    }
  }
  return o;
}

/* Whether none of the items that can begin at `base` in a section would cover room in others that
 * lower ones can still take. */
static bool lie_flat(const beam *b, const layout *l, int32_t section, int64_t base) {
  const braid_packing *p = b->p;
  for (int32_t k = b->begin_of[section]; k < b->begin_of[section + 1]; ++k) {
    int32_t i = b->item_in[k];
    if (l->placed[i] || l->lowest[i] != base)
      continue;
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      if (l->floor[p->in.item[at]] < base + p->low[at])
        return false;
  }
  return true;
}

/* Raises floors to where the first items can begin, and chooses the section with the fewest ways
 * to go on. Returns -1 if there is not enough space, `sections` if everything is placed. */
static int32_t choose_section(beam *b, const layout *l, opening *best) {
  int32_t sections = b->p->sections, chosen = sections, fewest = DONE;
  for (int32_t section = 0; section < sections; ++section) {
    opening o = opening_of(b, l, section);
    b->openings[section] = o;
    if (!o.count)
      continue;
    if (o.first > l->floor[section]) {
      l->spare[section] -= o.first - l->floor[section];
      l->floor[section] = o.first;
      if (l->spare[section] < 0)
        return -1;
    }
  }
  for (int32_t section = 0; section < sections; ++section) {
    opening o = b->openings[section];
    bool may_wait = o.second != INT64_MAX && o.second - o.first <= l->spare[section];
    int32_t ways = o.count + may_wait;
    bool fewer = ways < fewest || (ways == fewest && o.first < best->first);
    if (o.count && fewer && lie_flat(b, l, section, o.first)) {
      fewest = ways;
      chosen = section;
      *best = o;
    }
  }
  return chosen;
}

static uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

static uint64_t print_of(const beam *b, const layout *l) {
  uint64_t print = 0;
  for (int32_t i = 0; i < b->p->items; ++i)
    if (!l->placed[i])
      print += mixed(mixed((uint64_t)i + 1) ^ (uint64_t)l->lowest[i]);
  return print;
}

/* Whether a layout is the first of its kind in a layer. */
static bool is_new(beam *b, const layout *l) {
  uint64_t print = print_of(b, l) | 1;
  size_t at = print >> 1 & b->print_mask;
  for (; b->prints[at]; at = (at + 1) & b->print_mask)
    if (b->prints[at] == print)
      return false;
  b->prints[at] = print;
  return true;
}

/* Notes the ways to go on from a layout of `layer`, or that it is complete. Returns whether it is
 * of use. */
static bool expand(beam *b, char *layer, int32_t place, int32_t score) {
  layout l = layout_at(b, layer, place);
  opening o = {0, 0, 0};
  int32_t section = choose_section(b, &l, &o);
  if (section < 0 || !is_new(b, &l))
    return false;
  if (section == b->p->sections) {
    b->done = place;
    return true;
  }
  for (int32_t k = b->begin_of[section]; k < b->begin_of[section + 1]; ++k) {
    int32_t i = b->item_in[k];
    if (l.placed[i] || l.lowest[i] != o.first)
      continue;
    int32_t after = score + steps_added(b, l.floor, i, o.first);
    if (!add_way(b, (way){draw(&b->random), after, place, i, -1, o.first}))
      b->clock.out_of_memory = true;
  }
  if (o.second != INT64_MAX && o.second - o.first <= l.spare[section] &&
      !add_way(b, (way){draw(&b->random), score + b->waste, place, -1, section, o.second}))
    b->clock.out_of_memory = true;
  return true;
}

/* Raises the offsets that a section shares with the next one. Returns whether it still fits. */
static bool level(const beam *b, const layout *l, int32_t section) {
  return raise_shared(&b->levels, section, l->floor, l->spare, l->placed, l->lowest);
}

/* Returns whether there still is room for all. */
static bool apply_way(const beam *b, const layout *l, const way *w) {
  const braid_packing *p = b->p;
  if (w->item < 0) {
    l->spare[w->section] -= w->base - l->floor[w->section];
    l->floor[w->section] = w->base;
    for (int32_t k = b->begin_of[w->section]; k < b->begin_of[w->section + 1]; ++k) {
      int32_t i = b->item_in[k];
      if (!l->placed[i] && l->lowest[i] < w->base)
        l->lowest[i] = (w->base + p->alignment[i] - 1) / p->alignment[i] * p->alignment[i];
    }
    return level(b, l, w->section - 1) && level(b, l, w->section);
  }
  int32_t i = w->item;
  l->placed[i] = 1;
  for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at) {
    int32_t section = p->in.item[at];
    l->spare[section] -= w->base + p->low[at] - l->floor[section];
    l->floor[section] = w->base + p->high[at];
    if (l->spare[section] < 0)
      return false;
  }
  for (int32_t k = p->others.begin[i]; k < p->others.begin[i + 1]; ++k) {
    int32_t other = p->others.item[k];
    int64_t above = w->base + p->over[k], step = p->alignment[other];
    above = (above + step - 1) / step * step;
    if (l->placed[other] || above <= l->lowest[other])
      continue;
    l->lowest[other] = above;
    if (above + p->extent[other] > p->capacity)
      return false;
  }
  for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at) {
    bool begins = at == p->in.begin[i] || p->in.item[at - 1] < p->in.item[at] - 1;
    bool ends = at + 1 == p->in.begin[i + 1] || p->in.item[at + 1] > p->in.item[at] + 1;
    if ((begins && !level(b, l, p->in.item[at] - 1)) || (ends && !level(b, l, p->in.item[at])))
      return false;
  }
  return true;
}

static void clear_prints(beam *b) { memset(b->prints, 0, (b->print_mask + 1) * sizeof *b->prints); }

void beam_advance(beam *b) {
  int64_t count = b->way_count;
  qsort(b->ways, (size_t)count, sizeof *b->ways, compare_ways);
  way *ways = b->ways;
  b->ways = NULL;
  b->way_count = b->way_capacity = 0;
  clear_prints(b);
  int32_t made = 0;
  int64_t k = 0;
  for (; k < count && made < b->width && b->done < 0 && !b->clock.out_of_memory; ++k) {
    if (k % 64 == 0 && packer_is_late(&b->clock)) {
      made = 0;
      break;
    }
    memcpy(b->layers[1] + (size_t)made * b->bytes, b->layers[0] + (size_t)ways[k].parent * b->bytes,
           b->bytes);
    layout l = layout_at(b, b->layers[1], made);
    made += apply_way(b, &l, &ways[k]) && expand(b, b->layers[1], made, ways[k].score);
  }
  b->dropped = k < count;
  free(ways);
  b->count = made;
  char *layer = b->layers[0];
  b->layers[0] = b->layers[1];
  b->layers[1] = layer;
}

/* The items by section, in one array: where those of each begin, then the items. */
static int32_t *items_by_section(const braid_packing *p) {
  int32_t total = p->in.begin[p->items];
  int32_t *lists = calloc((size_t)p->sections + 2 + (size_t)total, sizeof *lists);
  if (!lists)
    return NULL;
  int32_t *begin = lists, *items = lists + p->sections + 1;
  for (int32_t at = 0; at < total; ++at)
    ++begin[p->in.item[at] + 1];
  for (int32_t section = 0; section < p->sections; ++section)
    begin[section + 1] += begin[section];
  for (int32_t i = p->items - 1; i >= 0; --i)
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      items[--begin[p->in.item[at] + 1]] = i;
  /* Each begin now is where its section ends less its items: shift them back. */
  for (int32_t section = 0; section < p->sections; ++section)
    begin[section] = begin[section + 1];
  begin[p->sections] = total;
  return lists;
}

bool beam_open(beam *b, const braid_packing *p, int32_t waste, uint64_t seed, double seconds) {
  *b = (beam){.p = p, .waste = waste, .random = seed | 1, .done = -1};
  size_t items = (size_t)p->items, sections = (size_t)p->sections;
  b->bytes = ((items + 2 * sections) * sizeof(int64_t) + items + 7) / 8 * 8;
  b->openings = calloc(sections + 1, sizeof *b->openings);
  b->weights = calloc(sections + 1, sizeof *b->weights);
  int32_t *lists = items_by_section(p);
  b->begin_of = lists;
  b->item_in = lists ? lists + p->sections + 1 : NULL;
  bool has_memory = packer_open(&b->clock, p, NULL, seconds) & levels_open(&b->levels, p);
  return has_memory && b->openings && b->weights && lists;
}

void beam_close(beam *b) {
  packer_close(&b->clock);
  levels_close(&b->levels);
  free(b->openings);
  free(b->weights);
  free((void *)b->begin_of);
  free(b->layers[0]);
  free(b->layers[1]);
  free(b->prints);
  free(b->ways);
}

static bool widen(beam *b, int32_t width) {
  b->width = width;
  size_t prints = 4;
  while (prints < 2 * (size_t)width)
    prints *= 2;
  free(b->prints);
  free(b->layers[0]);
  free(b->layers[1]);
  b->print_mask = prints - 1;
  b->prints = malloc(prints * sizeof *b->prints);
  b->layers[0] = malloc((size_t)width * b->bytes);
  b->layers[1] = malloc((size_t)width * b->bytes);
  return b->prints && b->layers[0] && b->layers[1];
}

static void begin_layout(beam *b) {
  const braid_packing *p = b->p;
  memset(b->layers[0], 0, b->bytes);
  layout l = layout_at(b, b->layers[0], 0);
  for (int32_t section = 0; section < p->sections; ++section)
    l.spare[section] = p->capacity;
  for (int32_t i = 0; i < p->items; ++i)
    for (int32_t at = p->in.begin[i]; at < p->in.begin[i + 1]; ++at)
      l.spare[p->in.item[at]] -= p->high[at] - p->low[at];
}

/* The scores of the steps of a skyline. */
static int32_t score_of(const beam *b, const layout *l) {
  int32_t score = 0;
  for (int32_t section = 1; section < b->p->sections; ++section)
    score += b->weights[section] * (l->floor[section - 1] != l->floor[section]);
  return score;
}

bool beam_start(beam *b, const char *layouts, int32_t count, int32_t width) {
  if (width != b->width && !widen(b, width > count ? width : count))
    return false;
  for (int32_t section = 0; section <= b->p->sections; ++section)
    b->weights[section] = 1 + (int32_t)((draw(&b->random) >> 33) % WEIGHTS);
  if (layouts)
    memcpy(b->layers[0], layouts, (size_t)count * b->bytes);
  else
    begin_layout(b);
  b->way_count = 0;
  b->done = -1;
  clear_prints(b);
  b->count = 0;
  for (int32_t place = 0; place < count; ++place) {
    layout l = layout_at(b, b->layers[0], place);
    b->count += expand(b, b->layers[0], place, score_of(b, &l));
  }
  return !b->clock.out_of_memory;
}

layout beam_layout(const beam *b, int32_t place) { return layout_at(b, b->layers[0], place); }
