/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Layers of partial packings with little room to spare. In a section without any, the next item
 * lies on what is there: the section with the fewest such items decides what is placed next. And
 * tops that are level with their neighbours are rarely so by chance. Where a step matters how much
 * is drawn at random, so that many narrow searches see more than a wide one.
 */
#ifndef BRAID_PACKING_LAYERS_H
#define BRAID_PACKING_LAYERS_H

#include "levels.h"
#include "partial_packing.h"

/* A partial packing; its arrays lie behind each other. */
typedef struct {
  int64_t *lowest; /* by item: its base at least; exact for placed ones */
  int64_t *floor;  /* by section: where what is not placed can begin */
  int64_t *spare;  /* by section: bytes that may still be left empty */
  uint8_t *placed; /* by item */
} layout;

/* A way to go on from a layout of the layer before. */
typedef struct {
  uint64_t tie;
  int32_t score;
  int32_t parent;
  int32_t item;    /* to be placed, or -1: */
  int32_t section; /* to be left empty */
  int64_t base;    /* there, or up to there */
} way;

/* Of the items of a section that are not placed: where the first can begin, how many there, and
 * where the next can. */
typedef struct {
  int64_t first;
  int64_t second;
  int32_t count;
} opening;

typedef struct {
  const braid_packing *p;
  const int32_t *begin_of; /* by section: where its items begin in `item_in` */
  const int32_t *item_in;
  opening *openings; /* by section: scratch */
  int32_t *weights;  /* by section: what a step before it scores */
  levels levels;
  packer clock;
  int32_t waste; /* what leaving room empty scores */
  uint64_t random;
  size_t bytes;     /* of a layout */
  int32_t width;    /* most layouts of a layer */
  char *layers[2];  /* the current one and room for the next */
  uint64_t *prints; /* of the layouts of a layer: a hash table */
  size_t print_mask;
  int32_t count; /* layouts of the current layer */
  bool dropped;  /* whether some useful ones were dropped from it */
  int32_t done;  /* the complete layout of the layer, or -1 */
  way *ways;
  int64_t way_count;
  int64_t way_capacity;
} beam;

/* Returns whether there is memory. `width` layouts can be widened later. */
bool beam_open(beam *b, const braid_packing *p, int32_t waste, uint64_t seed, double seconds);
void beam_close(beam *b);

/* Continues from `count` consecutive layouts (from nothing placed: NULL), with layers of at
 * most `width` and other weights. Returns whether there is memory. */
bool beam_start(beam *b, const char *layouts, int32_t count, int32_t width);

/* Makes the next layer of the best ways out of this one. */
void beam_advance(beam *b);

/* A layout of the current layer. */
layout beam_layout(const beam *b, int32_t place);

#endif
