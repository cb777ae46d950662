/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "boundary_sweep.h"

#include "levels.h"
#include "random_search.h"

#include <stdlib.h>
#include <string.h>

enum { NEIGHBOURS = 256 /* most sets of items side by side that are looked at */ };
static const double SWEEP_NOISE = 0.1; /* in scores, logarithms, for beams that differ */
static const small_set NOTHING = {{0, 0}};

/* Makes room for `more` in an array; returns whether there is memory. */
static bool grow(void **array, int64_t count, int64_t more, int64_t *capacity, size_t size) {
  if (count + more <= *capacity)
    return true;
  int64_t wanted = 2 * *capacity + more + 64;
  void *grown = realloc(*array, (size_t)wanted * size);
  if (!grown)
    return false;
  *array = grown;
  *capacity = wanted;
  return true;
}

static bool grow_short(void **array, int32_t count, int32_t *capacity, size_t size) {
  int64_t wide = *capacity;
  bool has_memory = grow(array, count, 1, &wide, size);
  *capacity = (int32_t)wide;
  return has_memory;
}

bool sweep_go_to(boundary_sweep *s, int32_t moment) {
  const braid_packing *p = s->p;
  s->moment = moment;
  s->at.count[0] = s->at.count[1] = 0;
  for (int32_t i = 0; i < p->items; ++i)
    for (int side = 0; side < 2; ++side) {
      if (side ? s->begin[i] != moment : s->end[i] != moment - 1)
        continue;
      int32_t at = s->at.count[side]++;
      if (at == SMALL_SET_SIZE)
        return false;
      for (; at && p->extent[s->sides[side][at - 1]] < p->extent[i]; --at)
        s->sides[side][at] = s->sides[side][at - 1];
      s->sides[side][at] = i;
    }
  for (int side = 0; side < 2; ++side) {
    for (int32_t k = 0; k < s->at.count[side]; ++k)
      s->sizes[side][k] = p->extent[s->sides[side][k]];
    s->at.size[side] = s->sizes[side];
  }
  return true;
}

static int compare_extensions(const void *left, const void *right) {
  const extension *a = left, *b = right;
  if (a->score != b->score)
    return a->score > b->score ? -1 : 1;
  return a->from < b->from ? -1 : a->from > b->from;
}

/* Adds blocks of what the orders at hand have side by side. */
static void add_neighbours(boundary_sweep *s, const partial_order *o) {
  for (int32_t k = 0; k < s->at.count[0]; ++k) {
    s->number[s->sides[0][k]] = k;
    s->in_set[s->sides[0][k]] = small_set_has(o->left[0], k);
  }
  int32_t root = tree_read(&s->tree, s->codes + o->code);
  int32_t count = tree_neighbours(&s->tree, root, s->in_set, s->number, s->sets, NEIGHBOURS);
  for (int32_t k = 0; k < s->at.count[0]; ++k)
    s->in_set[s->sides[0][k]] = 0;
  for (int32_t k = 0; k < count; ++k)
    add_blocks_of(&s->at, o->left, s->sets[k], &s->blocks);
}

/* Lists the blocks that may come next, for the largest item without one. */
static void extend(boundary_sweep *s, int32_t from, int32_t taken) {
  const partial_order *o = &s->orders[from];
  int32_t known = s->blocks.count;
  if (s->blocks.cut)
    add_neighbours(s, o);
  for (int32_t k = 0; k < s->blocks.count; ++k) {
    const block *own = &s->blocks.blocks[k];
    int32_t then = taken + small_set_count(own->side[0]) + small_set_count(own->side[1]);
    extension_list *list = &s->extensions[then];
    if (list->count >= 32 * s->width) {
      qsort(list->items, (size_t)list->count, sizeof *list->items, compare_extensions);
      list->count = 16 * s->width;
    }
    if (!grow_short((void **)&list->items, list->count, &list->capacity, sizeof *list->items)) {
      s->clock.out_of_memory = true;
      return;
    }
    double score = o->score + own->evidence + SWEEP_NOISE * draw_share(&s->random);
    list->items[list->count++] = (extension){score, from, {own->side[0], own->side[1]}};
  }
  s->blocks.count = known;
}

int32_t sweep_read_with(boundary_sweep *s, const int16_t *code, const small_set side[2],
                        bool stays) {
  int32_t root = tree_read(&s->tree, code), count = 0, put = -1;
  for (int32_t k = 0; k < s->at.count[0]; ++k)
    if (small_set_has(side[0], k))
      s->in_set[s->sides[0][k]] = 1;
  for (int32_t k = 0; k < s->at.count[1]; ++k)
    if (small_set_has(side[1], k))
      s->group[count++] = (int16_t)s->sides[1][k];
  if (!stays)
    put = tree_group(&s->tree, s->group, count);
  root = tree_gather(&s->tree, root, s->in_set, put);
  for (int32_t k = 0; k < s->at.count[0]; ++k)
    s->in_set[s->sides[0][k]] = 0;
  return root;
}

static bool is_new_order(boundary_sweep *s, uint64_t print) {
  print |= 1;
  size_t at = print >> 1 & s->print_mask;
  for (; s->prints[at]; at = (at + 1) & s->print_mask)
    if (s->prints[at] == print)
      return false;
  s->prints[at] = print;
  return true;
}

/* Makes a partial order of an extension, unless none is possible or an equal one exists. */
static void make_order(boundary_sweep *s, const extension *e) {
  partial_order from = s->orders[e->from];
  int32_t root = sweep_read_with(s, s->codes + from.code, e->side, false);
  if (root < 0)
    return;
  partial_order made = {.score = e->score, .code = s->code_count, .step = s->step_count};
  uint64_t print = tree_print(&s->tree, root);
  for (int side = 0; side < 2; ++side) {
    made.left[side] = small_set_less(from.left[side], e->side[side]);
    for (int word = 0; word < 2; ++word)
      print = (print ^ made.left[side].word[word]) * 0x9e3779b97f4a7c15ull;
  }
  if (!is_new_order(s, print))
    return;
  made.freedom = tree_freedom(&s->tree, root);
  double own = s->tree.log_factorial[small_set_count(e->side[1])];
  made.score -= s->freedom * (from.freedom - (made.freedom - own) - s->tree.removed);
  int64_t room = tree_code_size(s->p->items);
  if (!grow((void **)&s->codes, s->code_count, room, &s->code_capacity, sizeof *s->codes) ||
      !grow_short((void **)&s->orders, s->order_count, &s->order_capacity, sizeof *s->orders) ||
      !grow_short((void **)&s->steps, s->step_count, &s->step_capacity, sizeof *s->steps)) {
    s->clock.out_of_memory = true;
    return;
  }
  s->code_count += tree_write(&s->tree, root, s->codes + s->code_count);
  s->steps[s->step_count++] = (block_step){from.step, s->moment, {e->side[0], e->side[1]}};
  s->orders[s->order_count++] = made;
}

/* Makes the best extensions by which `taken` items are in blocks into partial orders; returns the
 * number of the first one. */
static int32_t make_orders(boundary_sweep *s, int32_t taken) {
  extension_list *list = &s->extensions[taken];
  int32_t first = s->order_count;
  qsort(list->items, (size_t)list->count, sizeof *list->items, compare_extensions);
  memset(s->prints, 0, (s->print_mask + 1) * sizeof *s->prints);
  for (int32_t k = 0; k < list->count && s->order_count - first < s->width; ++k) {
    if ((k % 64 == 0 && packer_is_late(&s->clock)) || s->clock.out_of_memory)
      break;
    make_order(s, &list->items[k]);
  }
  list->count = 0;
  return first;
}

/* Drops all partial orders but those from `first` on. */
static void keep_orders(boundary_sweep *s, int32_t first) {
  int64_t codes = 0;
  for (int32_t k = first; k < s->order_count; ++k) {
    partial_order own = s->orders[k];
    int64_t end = k + 1 < s->order_count ? s->orders[k + 1].code : s->code_count;
    memmove(s->codes + codes, s->codes + own.code, (size_t)(end - own.code) * sizeof *s->codes);
    own.code = codes;
    codes += end - s->orders[k].code;
    s->orders[k - first] = own;
  }
  s->order_count -= first;
  s->code_count = codes;
}

static int compare_turns(const void *left, const void *right) {
  const turn *a = left, *b = right;
  for (int side = 0; side < 2; ++side)
    for (int word = 0; word < 2; ++word)
      if (a->left[side].word[word] != b->left[side].word[word])
        return a->left[side].word[word] < b->left[side].word[word] ? -1 : 1;
  return a->order - b->order;
}

/* Extends the partial orders from `first` on, one after the other, that have equal rests. */
static void extend_all(boundary_sweep *s, int32_t first, int32_t taken) {
  int32_t count = s->order_count - first;
  for (int32_t k = 0; k < count; ++k) {
    const small_set *left = s->orders[first + k].left;
    s->turns[k] = (turn){{left[0], left[1]}, first + k};
  }
  qsort(s->turns, (size_t)count, sizeof *s->turns, compare_turns);
  for (int32_t k = 0; k < count && !packer_is_late(&s->clock); ++k) {
    const small_set *left = s->turns[k].left, *before = k ? s->turns[k - 1].left : NULL;
    if (!k || !small_set_equal(left[0], before[0]) || !small_set_equal(left[1], before[1]))
      list_blocks(&s->at, left, &s->blocks);
    extend(s, s->turns[k].order, taken);
  }
}

bool sweep_pass(boundary_sweep *s, int32_t moment) {
  if (!sweep_go_to(s, moment))
    return false;
  int32_t all = s->at.count[0] + s->at.count[1];
  for (int32_t k = 0; k < s->order_count; ++k)
    for (int side = 0; side < 2; ++side) {
      s->orders[k].left[side] = NOTHING;
      for (int32_t i = 0; i < s->at.count[side]; ++i)
        small_set_add(&s->orders[k].left[side], i);
    }
  for (int32_t taken = 0; taken < all; ++taken) {
    int32_t first = taken ? make_orders(s, taken) : 0;
    extend_all(s, first, taken);
  }
  keep_orders(s, make_orders(s, all));
  return s->order_count && !s->clock.out_of_memory && !s->blocks.out_of_memory;
}

void sweep_write_first(boundary_sweep *s, int16_t *code) {
  int32_t count = 0;
  for (int32_t i = 0; i < s->p->items; ++i)
    if (!s->begin[i])
      s->group[count++] = (int16_t)i;
  s->tree.count = 0;
  tree_write(&s->tree, tree_group(&s->tree, s->group, count), code);
}

static bool open_first(boundary_sweep *s) {
  int64_t size = tree_code_size(s->p->items);
  if (!grow((void **)&s->codes, 0, size, &s->code_capacity, sizeof *s->codes) ||
      !grow_short((void **)&s->orders, 0, &s->order_capacity, sizeof *s->orders))
    return false;
  sweep_write_first(s, s->codes);
  int32_t root = tree_read(&s->tree, s->codes);
  s->code_count = tree_write(&s->tree, root, s->codes);
  s->orders[s->order_count++] =
      (partial_order){.step = -1, .freedom = tree_freedom(&s->tree, root)};
  return true;
}

bool sweep_open(boundary_sweep *s, const braid_packing *p, int32_t width, bool backwards,
                double seconds) {
  *s = (boundary_sweep){.p = p, .width = width};
  size_t items = (size_t)p->items + 1;
  size_t prints = 4;
  while (prints < 2 * (size_t)width)
    prints *= 2;
  s->print_mask = prints - 1;
  s->begin = malloc(items * sizeof *s->begin);
  s->end = malloc(items * sizeof *s->end);
  s->prints = malloc(prints * sizeof *s->prints);
  s->turns = malloc(((size_t)width + 1) * sizeof *s->turns);
  s->in_set = calloc(items, sizeof *s->in_set);
  s->group = malloc(items * sizeof *s->group);
  s->number = malloc(items * sizeof *s->number);
  s->sets = malloc(NEIGHBOURS * sizeof *s->sets);
  bool has_memory = packer_open(&s->clock, p, NULL, seconds) && s->begin && s->end && s->prints &&
                    s->turns && s->in_set && s->group && s->number && s->sets;
  for (int side = 0; side < 2; ++side) {
    s->sides[side] = malloc((SMALL_SET_SIZE + 1) * sizeof **s->sides);
    s->sizes[side] = malloc((SMALL_SET_SIZE + 1) * sizeof **s->sizes);
    has_memory &= s->sides[side] && s->sizes[side];
  }
  has_memory &= tree_open(&s->tree, p->items);
  if (!has_memory)
    return false;
  for (int32_t i = 0; i < p->items; ++i) {
    int32_t first = p->in.item[p->in.begin[i]], last = p->in.item[p->in.begin[i + 1] - 1];
    s->begin[i] = backwards ? p->sections - 1 - last : first;
    s->end[i] = backwards ? p->sections - 1 - first : last;
    s->at.unit = common_divisor(s->at.unit, p->extent[i]);
  }
  s->at.log_factorial = s->tree.log_factorial;
  return open_first(s);
}

void sweep_close(boundary_sweep *s) {
  packer_close(&s->clock);
  tree_close(&s->tree);
  free(s->begin);
  free(s->end);
  free(s->prints);
  free(s->turns);
  free(s->in_set);
  free(s->group);
  free(s->number);
  free(s->sets);
  for (int side = 0; side < 2; ++side) {
    free(s->sides[side]);
    free(s->sizes[side]);
  }
  for (int32_t k = 0; k <= 2 * SMALL_SET_SIZE; ++k)
    free(s->extensions[k].items);
  free(s->orders);
  free(s->codes);
  free(s->steps);
  free(s->blocks.blocks);
}
