/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "order_tree.h"

#include <math.h>
#include <stdlib.h>

enum { HOLDS_NONE, HOLDS_SOME, HOLDS_ALL };

/* A list of nodes under construction. */
typedef struct {
  int32_t first, last, count;
} node_list;

static const node_list NO_NODES = {-1, -1, 0};

bool tree_open(order_tree *t, int32_t items) {
  size_t count = (size_t)(items > SMALL_SET_SIZE ? items : SMALL_SET_SIZE) + 2;
  *t = (order_tree){.nodes = malloc(8 * count * sizeof *t->nodes),
                    .log_factorial = calloc(count, sizeof *t->log_factorial)};
  if (!t->nodes || !t->log_factorial)
    return false;
  for (size_t k = 2; k < count; ++k)
    t->log_factorial[k] = t->log_factorial[k - 1] + log((double)k);
  return true;
}

void tree_close(order_tree *t) {
  free(t->nodes);
  free(t->log_factorial);
}

static int32_t new_node(order_tree *t, int16_t kind, uint8_t holds) {
  t->nodes[t->count] = (tree_node){-1, -1, kind, holds};
  return t->count++;
}

static void append_node(order_tree *t, node_list *list, int32_t node) {
  t->nodes[node].next = -1;
  if (list->count++)
    t->nodes[list->last].next = node;
  else
    list->first = node;
  list->last = node;
}

static void append_nodes(order_tree *t, node_list *list, int32_t node) {
  for (int32_t next; node >= 0; node = next) {
    next = t->nodes[node].next;
    append_node(t, list, node);
  }
}

static int32_t reverse_nodes(order_tree *t, int32_t node) {
  int32_t before = -1;
  for (int32_t next; node >= 0; node = next) {
    next = t->nodes[node].next;
    t->nodes[node].next = before;
    before = node;
  }
  return before;
}

/* One node for a list; -1 for none. */
static int32_t join_nodes(order_tree *t, const node_list *list, int16_t kind, uint8_t holds) {
  if (list->count < 2)
    return list->first;
  /* Two in a chain are two in any order. */
  int32_t node = new_node(t, list->count == 2 ? FREE_NODE : kind, holds);
  t->nodes[node].first = list->first;
  return node;
}

static int32_t read_node(order_tree *t, const int16_t **code) {
  int16_t kind = *(*code)++;
  int32_t node = new_node(t, kind, HOLDS_NONE);
  if (kind >= 0)
    return node;
  node_list children = NO_NODES;
  while (**code != END_NODE)
    append_node(t, &children, read_node(t, code));
  ++*code;
  t->nodes[node].first = children.first;
  return node;
}

int32_t tree_read(order_tree *t, const int16_t *code) {
  t->count = 0;
  return read_node(t, &code);
}

int32_t tree_write(const order_tree *t, int32_t root, int16_t *code) {
  int32_t count = 0;
  code[count++] = t->nodes[root].kind;
  if (t->nodes[root].kind >= 0)
    return count;
  for (int32_t c = t->nodes[root].first; c >= 0; c = t->nodes[c].next)
    count += tree_write(t, c, code + count);
  code[count++] = END_NODE;
  return count;
}

int32_t tree_group(order_tree *t, const int16_t *items, int32_t count) {
  node_list list = NO_NODES;
  for (int32_t k = 0; k < count; ++k)
    append_node(t, &list, new_node(t, items[k], HOLDS_NONE));
  return join_nodes(t, &list, FREE_NODE, HOLDS_NONE);
}

static uint8_t mark_set(order_tree *t, int32_t node, const uint8_t *in_set) {
  tree_node *own = &t->nodes[node];
  if (own->kind >= 0)
    return own->holds = in_set[own->kind] ? HOLDS_ALL : HOLDS_NONE;
  bool some = false, others = false;
  for (int32_t c = own->first; c >= 0; c = t->nodes[c].next) {
    uint8_t holds = mark_set(t, c, in_set);
    some |= holds != HOLDS_NONE;
    others |= holds != HOLDS_ALL;
  }
  return own->holds = !some ? HOLDS_NONE : others ? HOLDS_SOME : HOLDS_ALL;
}

/* Takes children apart by what they hold; returns how many hold some of the set. */
static int32_t sort_out(order_tree *t, int32_t child, node_list lists[3]) {
  lists[HOLDS_NONE] = lists[HOLDS_SOME] = lists[HOLDS_ALL] = NO_NODES;
  for (int32_t next; child >= 0; child = next) {
    next = t->nodes[child].next;
    append_node(t, &lists[t->nodes[child].holds], child);
  }
  return lists[HOLDS_SOME].count;
}

/* Appends the replacement of a node whose items of the set are at its end. Returns whether they
 * can. */
static bool line_up(order_tree *t, int32_t node, node_list *out) {
  tree_node *own = &t->nodes[node];
  if (own->holds != HOLDS_SOME) {
    append_node(t, out, node);
    return true;
  }
  if (own->kind == FREE_NODE) {
    node_list lists[3];
    if (sort_out(t, own->first, lists) > 1)
      return false;
    if (lists[HOLDS_NONE].count)
      append_node(t, out, join_nodes(t, &lists[HOLDS_NONE], FREE_NODE, HOLDS_NONE));
    if (lists[HOLDS_SOME].count && !line_up(t, lists[HOLDS_SOME].first, out))
      return false;
    if (lists[HOLDS_ALL].count)
      append_node(t, out, join_nodes(t, &lists[HOLDS_ALL], FREE_NODE, HOLDS_ALL));
    return true;
  }
  int32_t child = own->first, last = child;
  while (t->nodes[last].next >= 0)
    last = t->nodes[last].next;
  if (t->nodes[child].holds > t->nodes[last].holds)
    child = reverse_nodes(t, child);
  uint8_t before = HOLDS_NONE;
  for (int32_t next; child >= 0; child = next) {
    next = t->nodes[child].next;
    uint8_t holds = t->nodes[child].holds;
    if (holds < before || (holds == HOLDS_SOME && before == HOLDS_SOME) || !line_up(t, child, out))
      return false;
    before = holds;
  }
  return true;
}

/* A chain in which the nodes that hold all of the set are replaced by `block`, unless it is -1. */
static int32_t chained(order_tree *t, node_list *list, int32_t block) {
  if (block < 0)
    return join_nodes(t, list, CHAIN_NODE, HOLDS_SOME);
  node_list kept = NO_NODES;
  for (int32_t next, node = list->first; node >= 0; node = next) {
    next = t->nodes[node].next;
    if (t->nodes[node].holds != HOLDS_ALL)
      append_node(t, &kept, node);
    else
      t->removed += tree_freedom(t, node);
    if (t->nodes[node].holds == HOLDS_ALL && t->nodes[block].holds != HOLDS_ALL) {
      t->nodes[block].holds = HOLDS_ALL;
      append_node(t, &kept, block);
    }
  }
  return join_nodes(t, &kept, CHAIN_NODE, HOLDS_SOME);
}

static int32_t gather_free(order_tree *t, int32_t node, int32_t block) {
  node_list lists[3], middle = NO_NODES, behind = NO_NODES;
  if (sort_out(t, t->nodes[node].first, lists) > 2)
    return -1;
  int32_t left = lists[HOLDS_SOME].first, right = left < 0 ? -1 : t->nodes[left].next;
  if (left >= 0 && !line_up(t, left, &middle))
    return -1;
  if (lists[HOLDS_ALL].count)
    append_node(t, &middle, join_nodes(t, &lists[HOLDS_ALL], FREE_NODE, HOLDS_ALL));
  if (right >= 0 && !line_up(t, right, &behind))
    return -1;
  append_nodes(t, &middle, reverse_nodes(t, behind.first));
  append_node(t, &lists[HOLDS_NONE], chained(t, &middle, block));
  return join_nodes(t, &lists[HOLDS_NONE], FREE_NODE, HOLDS_SOME);
}

static int32_t gather_chain(order_tree *t, int32_t node, int32_t block) {
  node_list out = NO_NODES;
  bool inside = false, over = false;
  for (int32_t next, child = t->nodes[node].first; child >= 0; child = next) {
    next = t->nodes[child].next;
    uint8_t holds = t->nodes[child].holds;
    if (holds != HOLDS_NONE && over)
      return -1;
    node_list line = NO_NODES;
    if (!line_up(t, child, &line))
      return -1;
    append_nodes(t, &out,
                 inside && holds == HOLDS_SOME ? reverse_nodes(t, line.first) : line.first);
    over |= inside && holds != HOLDS_ALL;
    inside |= holds != HOLDS_NONE;
  }
  return chained(t, &out, block);
}

static int32_t gather_below(order_tree *t, int32_t node, int32_t block) {
  if (t->nodes[node].holds == HOLDS_ALL) {
    if (block < 0)
      return node;
    t->removed += tree_freedom(t, node);
    return block;
  }
  int32_t held = 0, only = -1;
  for (int32_t c = t->nodes[node].first; c >= 0; c = t->nodes[c].next)
    if (t->nodes[c].holds != HOLDS_NONE) {
      ++held;
      only = c;
    }
  if (held > 1)
    return t->nodes[node].kind == FREE_NODE ? gather_free(t, node, block)
                                            : gather_chain(t, node, block);
  int32_t after = t->nodes[only].next, instead = gather_below(t, only, block);
  if (instead < 0)
    return -1;
  t->nodes[instead].next = after;
  if (t->nodes[node].first == only)
    t->nodes[node].first = instead;
  for (int32_t c = t->nodes[node].first; c >= 0 && c != instead; c = t->nodes[c].next)
    if (t->nodes[c].next == only)
      t->nodes[c].next = instead;
  return node;
}

int32_t tree_gather(order_tree *t, int32_t root, const uint8_t *in_set, int32_t block) {
  mark_set(t, root, in_set);
  t->removed = 0;
  int32_t gathered = gather_below(t, root, block);
  if (gathered >= 0)
    t->nodes[gathered].next = -1;
  return gathered;
}

/* The sets that `tree_neighbours` lists. */
typedef struct {
  const int32_t *number;
  small_set *sets;
  int32_t count, most;
} neighbour_sets;

static void note_set(neighbour_sets *n, small_set set) {
  for (int32_t k = 0; k < n->count; ++k)
    if (small_set_equal(n->sets[k], set))
      return;
  if (n->count < n->most && small_set_count(set))
    n->sets[n->count++] = set;
}

static small_set list_below(const order_tree *t, int32_t node, neighbour_sets *n) {
  const tree_node *own = &t->nodes[node];
  small_set all = {{0, 0}}, run = all;
  if (own->kind >= 0 && own->holds == HOLDS_ALL)
    small_set_add(&all, n->number[own->kind]);
  for (int32_t c = own->first; c >= 0; c = t->nodes[c].next) {
    small_set below = list_below(t, c, n);
    all = small_set_both(all, below);
    run = small_set_both(run, below);
    if (own->kind != CHAIN_NODE || t->nodes[c].holds == HOLDS_ALL)
      continue;
    note_set(n, run);
    run = below;
  }
  if (own->kind == CHAIN_NODE)
    note_set(n, run);
  note_set(n, all);
  return all;
}

int32_t tree_neighbours(order_tree *t, int32_t root, const uint8_t *in_set, const int32_t *number,
                        small_set *sets, int32_t most) {
  mark_set(t, root, in_set);
  neighbour_sets n = {number, sets, 0, most};
  list_below(t, root, &n);
  return n.count;
}

double tree_freedom(const order_tree *t, int32_t root) {
  if (t->nodes[root].kind >= 0)
    return 0;
  double sum = 0;
  int32_t count = 0;
  for (int32_t c = t->nodes[root].first; c >= 0; c = t->nodes[c].next) {
    sum += tree_freedom(t, c);
    ++count;
  }
  return sum + t->log_factorial[t->nodes[root].kind == CHAIN_NODE ? 2 : count];
}

static uint64_t mix_print(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

uint64_t tree_print(const order_tree *t, int32_t root) {
  int16_t kind = t->nodes[root].kind;
  if (kind >= 0)
    return mix_print((uint64_t)kind + 0x9e3779b97f4a7c15ull);
  uint64_t sum = 0, forth = 1, back = 0, power = 1;
  for (int32_t c = t->nodes[root].first; c >= 0; c = t->nodes[c].next) {
    uint64_t own = tree_print(t, c);
    sum += mix_print(own);
    forth = forth * 0x2545f4914f6cdd1dull + own;
    back += power * own;
    power *= 0x2545f4914f6cdd1dull;
  }
  back += power;
  return mix_print(kind == FREE_NODE ? sum : mix_print(forth) + mix_print(back) + 1);
}

/* Sorts below a node; returns the least key there. */
static int64_t sort_below(order_tree *t, int32_t node, const int64_t *key) {
  if (t->nodes[node].kind >= 0)
    return key[t->nodes[node].kind];
  node_list sorted = NO_NODES;
  int64_t least = INT64_MAX, first = 0, last = 0;
  bool is_free = t->nodes[node].kind == FREE_NODE;
  for (int32_t next, c = t->nodes[node].first; c >= 0; c = next) {
    next = t->nodes[c].next;
    int64_t own = sort_below(t, c, key);
    first = sorted.count ? first : own;
    last = own;
    least = own < least ? own : least;
    if (!is_free || !sorted.count) {
      append_node(t, &sorted, c);
      continue;
    }
    int32_t before = -1;
    for (int32_t s = sorted.first; s >= 0 && sort_below(t, s, key) <= own; s = t->nodes[s].next)
      before = s;
    if (before == sorted.last) {
      append_node(t, &sorted, c);
      continue;
    }
    t->nodes[c].next = before < 0 ? sorted.first : t->nodes[before].next;
    if (before < 0)
      sorted.first = c;
    else
      t->nodes[before].next = c;
    ++sorted.count;
  }
  t->nodes[node].first = !is_free && first > last ? reverse_nodes(t, sorted.first) : sorted.first;
  return least;
}

void tree_sort(order_tree *t, int32_t root, const int64_t *key) { sort_below(t, root, key); }
