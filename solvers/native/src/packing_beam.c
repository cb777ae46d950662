/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Beam search for packings, with ways back. A layer that has become small again, though layouts
 * were left out before, has what little there is that goes on: a checkpoint. If no layout of a
 * layer can be extended, the search restarts at the last checkpoint with a wider beam, and after a
 * few failures at the checkpoint before. So layers are wide only where many partial packings look
 * alike for long.
 */
#include "packing_layers.h"

#include <stdlib.h>
#include <string.h>

enum {
  FEW = 16,        /* layouts of a checkpoint */
  RETRIES = 3,     /* how often a checkpoint is widened, twofold each time */
  CHECKPOINTS = 64 /* most at a time */
};

typedef struct {
  char *layouts;
  int32_t count;
  int32_t width; /* of the layers after it */
  int32_t retries;
} checkpoint;

typedef struct {
  beam b;
  checkpoint points[CHECKPOINTS];
  int32_t count;
  int32_t width; /* after a new checkpoint */
  bool dropped;  /* whether layouts were dropped since the last one */
} trail;

static void drop_checkpoint(trail *t) { free(t->points[--t->count].layouts); }

/* Remembers the layer where it is small: in place of the last checkpoint where nothing was left out
 * since. */
static void remember(trail *t) {
  const beam *b = &t->b;
  if (b->count > FEW || (t->dropped && t->count == CHECKPOINTS))
    return;
  char *layouts = malloc((size_t)b->count * b->bytes);
  if (!layouts)
    return; /* the one before does as well */
  memcpy(layouts, b->layers[0], (size_t)b->count * b->bytes);
  if (t->dropped) {
    t->points[t->count++] = (checkpoint){layouts, b->count, t->width, 0};
  } else {
    checkpoint *last = &t->points[t->count - 1];
    free(last->layouts);
    last->layouts = layouts;
    last->count = b->count;
  }
  t->dropped = false;
}

/* Begins again at a checkpoint. Returns whether there is one. */
static bool go_back(trail *t) {
  /* If nothing was dropped, the search was exhaustive. */
  if (!t->dropped)
    drop_checkpoint(t);
  while (t->count && t->points[t->count - 1].retries == RETRIES)
    drop_checkpoint(t);
  if (!t->count)
    return false;
  checkpoint *last = &t->points[t->count - 1];
  ++last->retries;
  last->width *= 2;
  t->dropped = false;
  if (!beam_start(&t->b, last->layouts, last->count, last->width))
    t->b.clock.out_of_memory = true;
  return true;
}

static bool climb(trail *t) {
  beam *b = &t->b;
  t->points[t->count++] = (checkpoint){NULL, 1, t->width, 0};
  if (!beam_start(b, NULL, 1, t->width))
    b->clock.out_of_memory = true;
  while (b->done < 0 && !b->clock.out_of_memory) {
    if (b->count) {
      beam_advance(b);
      t->dropped |= b->dropped;
      if (b->count && b->done < 0)
        remember(t);
    } else if (packer_is_late(&b->clock) || !go_back(t)) {
      break;
    }
  }
  return b->done >= 0;
}

int32_t braid_pack_by_beam(const braid_packing *packing, int32_t width, int32_t waste,
                           uint64_t seed, double seconds, int64_t *base) {
  trail t = {.width = width};
  bool has_memory = beam_open(&t.b, packing, waste, seed, seconds);
  bool found = has_memory && climb(&t);
  if (found) {
    layout l = beam_layout(&t.b, t.b.done);
    memcpy(base, l.lowest, (size_t)packing->items * sizeof *base);
  }
  bool out_of_memory = !has_memory || t.b.clock.out_of_memory;
  while (t.count)
    drop_checkpoint(&t);
  beam_close(&t.b);
  return out_of_memory ? BRAID_OUT_OF_MEMORY : found ? BRAID_PACKING_FOUND : BRAID_PACKING_CUT;
}
