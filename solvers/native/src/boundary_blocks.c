/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "boundary_blocks.h"

#include <math.h>
#include <stdlib.h>

enum {
  MOST_BLOCKS = 256,       /* that are kept */
  COLLECTED_BLOCKS = 4096, /* of which */
  MOST_BESIDE = 4,         /* items besides the largest of its side, if not all are in the block */
  BLOCK_WORK = 200000,     /* sums that are looked at */
  WORK_OF_ENDING = 2000    /* for all of what is to end */
};

typedef struct {
  const boundary *b;
  block_list *list;
  int32_t own;                          /* the side of the largest item */
  int32_t item[2][SMALL_SET_SIZE];      /* the remaining items, descending */
  int64_t after[2][SMALL_SET_SIZE + 1]; /* sums of it from there on */
  int32_t count[2];
  block now;
  int32_t taken[2];
  int64_t budget; /* of work for the current items of its own side */
} block_search;

/* Logarithm of the number of ways to choose `some` of the remaining items of a side. */
static double log_choices(const block_search *s, int side) {
  const double *log_factorial = s->b->log_factorial;
  int32_t all = s->count[side], some = s->taken[side];
  return log_factorial[all] - log_factorial[some] - log_factorial[all - some];
}

static void note_block(block_search *s) {
  block_list *list = s->list;
  if (list->count == list->capacity) {
    int32_t capacity = 2 * list->capacity + 64;
    block *blocks = realloc(list->blocks, (size_t)capacity * sizeof *blocks);
    if (!blocks) {
      list->out_of_memory = true;
      return;
    }
    list->blocks = blocks;
    list->capacity = capacity;
  }
  list->blocks[list->count++] = s->now;
}

/* Chooses items of the other side, from `at` on, whose sum is `sum`. */
static void choose_other(block_search *s, int32_t at, int64_t left, int64_t sum) {
  int32_t other = !s->own;
  if (!left) {
    if (s->taken[0] < s->count[0] || s->taken[1] < s->count[1]) {
      s->now.evidence = log((double)(sum / s->b->unit)) - log_choices(s, 0) - log_choices(s, 1);
      note_block(s);
    }
    return;
  }
  for (; at < s->count[other] && s->after[other][at] >= left; ++at) {
    if (--s->budget < 0 || s->list->count >= COLLECTED_BLOCKS) {
      s->list->cut = true;
      return;
    }
    int64_t size = s->b->size[other][s->item[other][at]];
    if (size > left)
      continue;
    small_set before = s->now.side[other];
    small_set_add(&s->now.side[other], s->item[other][at]);
    ++s->taken[other];
    choose_other(s, at + 1, left - size, sum);
    --s->taken[other];
    s->now.side[other] = before;
  }
}

/* Chooses `more` items of the largest item's side, from `at` on; `sum` has what is chosen. */
static void choose_own(block_search *s, int32_t at, int32_t more, int64_t sum) {
  if (!more) {
    s->budget = s->list->work < BLOCK_WORK / 8 ? s->list->work : BLOCK_WORK / 8;
    s->list->work -= s->budget;
    choose_other(s, 0, sum, sum);
    s->list->work += s->budget > 0 ? s->budget : 0;
    return;
  }
  for (; at + more <= s->count[s->own] && s->list->work > 0; ++at) {
    int64_t with = sum + s->b->size[s->own][s->item[s->own][at]];
    --s->list->work;
    if (with > s->after[!s->own][0])
      continue;
    small_set before = s->now.side[s->own];
    small_set_add(&s->now.side[s->own], s->item[s->own][at]);
    ++s->taken[s->own];
    choose_own(s, at + 1, more - 1, with);
    --s->taken[s->own];
    s->now.side[s->own] = before;
  }
}

static int compare_blocks(const void *left, const void *right) {
  const block *a = left, *b = right;
  if (a->evidence != b->evidence)
    return a->evidence > b->evidence ? -1 : 1;
  for (int side = 0; side < 2; ++side)
    for (int word = 0; word < 2; ++word)
      if (a->side[side].word[word] != b->side[side].word[word])
        return a->side[side].word[word] < b->side[side].word[word] ? -1 : 1;
  return 0;
}

/* Lists the remaining items of both sides, and their sums; the side of the largest item is `own`.
 */
static void begin_blocks(block_search *s, const small_set left[2]) {
  for (int side = 0; side < 2; ++side) {
    for (int32_t i = 0; i < s->b->count[side]; ++i)
      if (small_set_has(left[side], i))
        s->item[side][s->count[side]++] = i;
    for (int32_t k = s->count[side] - 1; k >= 0; --k)
      s->after[side][k] = s->after[side][k + 1] + s->b->size[side][s->item[side][k]];
  }
  s->own = s->b->size[1][s->item[1][0]] > s->b->size[0][s->item[0][0]];
}

void list_blocks(const boundary *b, const small_set left[2], block_list *list) {
  list->count = 0;
  list->work = BLOCK_WORK;
  list->cut = false;
  block_search s = {.b = b, .list = list};
  begin_blocks(&s, left);
  int32_t own = s.own, others = s.count[own] - 1;
  int64_t largest = b->size[own][s.item[own][0]];
  small_set_add(&s.now.side[own], s.item[own][0]);
  s.taken[own] = 1;
  for (int32_t more = 0; more <= others && more <= MOST_BESIDE; ++more)
    choose_own(&s, 1, more, largest);
  list->cut |= others > MOST_BESIDE || list->count > MOST_BLOCKS || list->work <= 0;
  qsort(list->blocks, (size_t)list->count, sizeof *list->blocks, compare_blocks);
  if (list->count > MOST_BLOCKS)
    list->count = MOST_BLOCKS;
  /* That all that ends makes room for all that begins needs no chance. */
  s.now = (block){{left[0], left[1]}, 0};
  note_block(&s);
  for (int32_t k = list->count - 1; k > 0 && list->blocks[k - 1].evidence < 0; --k) {
    block before = list->blocks[k - 1];
    list->blocks[k - 1] = list->blocks[k];
    list->blocks[k] = before;
  }
}

void add_blocks_of(const boundary *b, const small_set left[2], small_set ending, block_list *list) {
  block_search s = {.b = b, .list = list, .budget = WORK_OF_ENDING};
  begin_blocks(&s, left);
  int64_t sum = 0;
  for (int32_t k = 0; k < s.count[0]; ++k)
    sum += small_set_has(ending, s.item[0][k]) ? b->size[0][s.item[0][k]] : 0;
  int32_t first = s.item[s.own][0];
  int64_t largest = b->size[s.own][first];
  if (s.own ? largest > sum : !small_set_has(ending, first))
    return;
  s.now.side[0] = ending;
  s.taken[0] = s.count[0]; /* so that what it is chosen from counts for nothing */
  int32_t own = s.own;
  s.own = 0;
  if (own) {
    small_set_add(&s.now.side[1], first);
    ++s.taken[1];
    sum -= largest;
  }
  bool cut = list->cut;
  choose_other(&s, own, sum, sum + (own ? largest : 0));
  list->cut = cut;
}
