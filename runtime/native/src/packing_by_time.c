/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Places the buffers of an arena: best fit, over the time in which they are used. The arena is a
 * row of blocks, used and free; no two free ones are neighbours. A buffer takes the smallest free
 * block that is large enough, or else the arena grows by what its last block lacks. Of buffers that
 * begin together, the largest comes first.
 */
#include "plans.h"

enum { NONE = -1 };

/* A part of the arena. */
typedef struct block {
  int64_t offset, bytes;
  int32_t below, above;   /* its neighbours; NONE at the ends */
  int32_t previous, next; /* of the free ones, in any order; `next` of chunks that are no block */
  bool is_free;
} block;

typedef struct arena {
  block *blocks;
  int32_t spare; /* the first chunk that is no block; these form a list */
  int32_t free;  /* and `next` of the free ones */
  int32_t last;  /* the block at the end */
  int64_t bytes;
} arena;

/* ---- Blocks ---- */

static void unlist(arena *own, int32_t number) {
  block *at = &own->blocks[number];
  if (at->previous == NONE)
    own->free = at->next;
  else
    own->blocks[at->previous].next = at->next;
  if (at->next != NONE)
    own->blocks[at->next].previous = at->previous;
  at->is_free = false;
}

static void list(arena *own, int32_t number) {
  block *at = &own->blocks[number];
  at->previous = NONE;
  at->next = own->free;
  at->is_free = true;
  if (own->free != NONE)
    own->blocks[own->free].previous = number;
  own->free = number;
}

/* A new block above another, or at the start of the arena. */
static int32_t add_above(arena *own, int32_t below, int64_t offset, int64_t bytes) {
  int32_t number = own->spare;
  block *at = &own->blocks[number];
  own->spare = at->next;
  int32_t above = below == NONE ? NONE : own->blocks[below].above;
  *at = (block){offset, bytes, below, above, NONE, NONE, false};
  if (below != NONE)
    own->blocks[below].above = number;
  if (above != NONE)
    own->blocks[above].below = number;
  else
    own->last = number;
  return number;
}

/* Lets a block absorb the one above it. */
static void join(arena *own, int32_t number) {
  block *at = &own->blocks[number];
  int32_t gone = at->above;
  block *above = &own->blocks[gone];
  at->bytes += above->bytes;
  at->above = above->above;
  if (at->above != NONE)
    own->blocks[at->above].below = number;
  else
    own->last = number;
  above->next = own->spare;
  own->spare = gone;
}

static void give_back(arena *own, int32_t number) {
  int32_t above = own->blocks[number].above, below = own->blocks[number].below;
  if (above != NONE && own->blocks[above].is_free) {
    unlist(own, above);
    join(own, number);
  }
  if (below != NONE && own->blocks[below].is_free)
    join(own, below); /* which is in the list */
  else
    list(own, number);
}

/* A block of so many bytes at the end of the arena; NONE where that is too large. */
static int32_t extend(arena *own, int64_t bytes) {
  int32_t last = own->last;
  bool grows = last != NONE && own->blocks[last].is_free;
  int64_t offset = grows ? own->blocks[last].offset : own->bytes, end;
  if (__builtin_add_overflow(offset, bytes, &end))
    return NONE;
  own->bytes = end;
  if (!grows)
    return add_above(own, last, offset, bytes);
  unlist(own, last);
  own->blocks[last].bytes = bytes;
  return last;
}

static int32_t take(arena *own, int64_t bytes) {
  int32_t best = NONE;
  for (int32_t at = own->free; at != NONE; at = own->blocks[at].next) {
    const block *found = &own->blocks[at];
    if (found->bytes >= bytes && (best == NONE || found->bytes < own->blocks[best].bytes))
      best = at;
  }
  if (best == NONE)
    return extend(own, bytes);
  unlist(own, best);
  block *taken = &own->blocks[best];
  int64_t rest = taken->bytes - bytes;
  taken->bytes = bytes;
  if (rest > 0)
    list(own, add_above(own, best, taken->offset + bytes, rest));
  return best;
}

/* ---- Packing ---- */

/* At each time all blocks but the free ones are buffers', and there is at most one more free one
 * than these. */
static size_t block_count(int64_t count) { return 2 * (size_t)count + 1; }

size_t braid_time_packing_bytes(int64_t count) {
  return block_count(count) * sizeof(block) +
         (size_t)count * (sizeof(braid_placement) + sizeof(int64_t));
}

bool braid_pack_by_time(const braid_lifetimes *lifetimes, const int64_t *bytes, void *room,
                        int64_t *offsets, int64_t *total, int64_t *least) {
  int64_t live = 0, count = lifetimes->count;
  const braid_buffer_v1 *buffers = lifetimes->buffers;
  braid_placement *requests = room;
  int64_t *blocks = (int64_t *)(requests + count); /* of each buffer */
  arena own = {(block *)(blocks + count), 0, NONE, NONE, 0};
  for (size_t i = 0; i < block_count(count); ++i)
    own.blocks[i].next = i + 1 < block_count(count) ? (int32_t)i + 1 : NONE;
  int64_t ended = 0;
  *least = 0;
  for (int64_t begun = 0, end; begun < count; begun = end) {
    int64_t step = buffers[lifetimes->by_first[begun]].first, waiting = 0;
    for (; buffers[lifetimes->by_last[ended]].last < step; ++ended)
      if (bytes[lifetimes->by_last[ended]] > 0) {
        live -= bytes[lifetimes->by_last[ended]];
        give_back(&own, (int32_t)blocks[lifetimes->by_last[ended]]);
      }
    for (end = begun; end < count && buffers[lifetimes->by_first[end]].first == step; ++end) {
      int64_t number = lifetimes->by_first[end];
      offsets[number] = 0;
      if (bytes[number] > 0)
        requests[waiting++] = (braid_placement){(double)bytes[number], number};
    }
    braid_sort_placements(requests, waiting);
    for (int64_t i = 0; i < waiting; ++i) {
      int64_t number = requests[i].number;
      int32_t taken = take(&own, bytes[number]);
      if (taken == NONE)
        return false;
      live += bytes[number]; /* no more than the arena has */
      blocks[number] = taken;
      offsets[number] = own.blocks[taken].offset;
    }
    *least = live > *least ? live : *least;
  }
  *total = own.bytes;
  return true;
}
