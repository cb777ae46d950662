/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "partial_packing.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN = 1 << 18 /* partial packings that are remembered to lead nowhere */ };

typedef struct {
  packer s;
  fingerprint *known;
  int64_t nodes;
} packing_search;

/* Partitions the unplaced items of `open` into sets that are not live together, one after the other
 * in `members`. Returns the number of sets; `ends` has the end of each. */
static int32_t split(packer *s, const open_item *open, int32_t count, int32_t *members,
                     int32_t *ends) {
  const braid_packing *p = s->p;
  int32_t first = p->sections, last = 0, left = 0;
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = open[k].item;
    if (s->placed[i])
      continue;
    int32_t begin = p->in.item[p->in.begin[i]], end = p->in.item[p->in.begin[i + 1] - 1];
    first = begin < first ? begin : first;
    last = end > last ? end : last;
    ++left;
  }
  if (!left)
    return 0;
  memset(s->crossing + first, 0, (size_t)(last + 2 - first) * sizeof *s->crossing);
  for (int32_t k = 0; k < count; ++k) {
    int32_t i = open[k].item;
    if (s->placed[i])
      continue;
    s->crossing[p->in.item[p->in.begin[i]] + 1] += 1;
    s->crossing[p->in.item[p->in.begin[i + 1] - 1] + 1] -= 1;
  }
  /* From how many items cross from the section before, to the number of the set. */
  int32_t sets = 0, crossing = 0;
  for (int32_t section = first; section <= last; ++section) {
    crossing += s->crossing[section];
    if (section > first && !crossing)
      ++sets;
    s->crossing[section] = sets;
  }
  ++sets;
  int32_t filled = 0, used = 0;
  for (int32_t set = 0; set < sets; ++set) {
    int32_t before = filled;
    for (int32_t k = 0; k < count; ++k) {
      int32_t i = open[k].item;
      if (!s->placed[i] && s->crossing[p->in.item[p->in.begin[i]]] == set)
        members[filled++] = i;
    }
    if (filled > before)
      ends[used++] = filled;
  }
  return used;
}

static int32_t search(packing_search *search, const int32_t *members, int32_t count,
                      const open_item *last);

/* Places `open[k]`, then the rest. */
static int32_t descend(packing_search *tree, const open_item *open, int32_t count, int32_t k,
                       int32_t *rest, bool *covered) {
  packer *s = &tree->s;
  int32_t placed = s->count;
  int64_t trail = s->trail_count;
  place(s, open[k].item, open[k].lowest, covered);
  if (s->out_of_memory)
    return BRAID_PACKING_CUT;
  int32_t *ends = rest + count;
  int32_t sets = split(s, open, count, rest, ends);
  int32_t found = BRAID_PACKING_FOUND;
  for (int32_t set = 0, begin = 0; set < sets && found == BRAID_PACKING_FOUND; ++set) {
    found = search(tree, rest + begin, ends[set] - begin, &open[k]);
    begin = ends[set];
  }
  if (found == BRAID_PACKING_NONE)
    undo(s, placed, trail);
  return found;
}

/* Places `members`, all after `last` in the order of bases. */
static int32_t search(packing_search *tree, const int32_t *members, int32_t count,
                      const open_item *last) {
  packer *s = &tree->s;
  if (--tree->nodes < 0 || packer_is_late(s))
    return BRAID_PACKING_CUT;
  open_item *open = malloc((size_t)count * (sizeof *open + 2 * sizeof(int32_t)));
  if (!open) {
    s->out_of_memory = true;
    return BRAID_PACKING_CUT;
  }
  int32_t found = BRAID_PACKING_NONE;
  int64_t end;
  if (sort_open(s, members, count, last, open, &end) && sections_fit(s, open, count)) {
    fingerprint own = fingerprint_of(s, open, count, last);
    fingerprint *known = &tree->known[own.first % KNOWN];
    bool covered = known->first != own.first || known->second != own.second;
    for (int32_t k = 0; k < count && covered && found == BRAID_PACKING_NONE; ++k) {
      if (open[k].lowest >= end)
        break;
      if (!open[k].passed)
        found = descend(tree, open, count, k, (int32_t *)(open + count), &covered);
    }
    if (found == BRAID_PACKING_NONE)
      *known = own;
  }
  free(open);
  return found;
}

int32_t braid_pack(const braid_packing *packing, const int32_t *rank, int64_t nodes, double seconds,
                   int64_t *base) {
  packing_search tree = {.nodes = nodes, .known = calloc(KNOWN, sizeof(fingerprint))};
  int32_t found = BRAID_PACKING_CUT;
  size_t items = (size_t)packing->items;
  int32_t *members = malloc((items + 1) * sizeof *members);
  if (packer_open(&tree.s, packing, rank, seconds) && tree.known && members) {
    /* In order of rank, so that sorting has little to do. */
    for (int32_t i = 0; i < packing->items; ++i)
      members[rank[i]] = i;
    open_item first = {-1, 0, false};
    found = items ? search(&tree, members, packing->items, &first) : BRAID_PACKING_FOUND;
  } else {
    tree.s.out_of_memory = true;
  }
  if (found == BRAID_PACKING_FOUND)
    memcpy(base, tree.s.lowest, items * sizeof *base);
  free(members);
  free(tree.known);
  packer_close(&tree.s);
  return tree.s.out_of_memory ? BRAID_OUT_OF_MEMORY : found;
}
