/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copies of boxes of tensors between global and shared memory, by tensor maps. Semantics: PTX ISA,
 * "cp.async.bulk.tensor", "Tensor maps" and "Swizzling modes". Loads land as late as can be: where
 * a thread waits for their mbarrier; stores where their thread waits for their group.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 5, CHUNK = 16, MAX_BOX = 256, SWIZZLE_128 = 128, MAP_ALIGNMENT = 64 };

/* The fields of a tensor map, in its 128 bytes; extents innermost first. */
typedef struct tensor_map {
  char *base;
  int32_t element, rank, swizzle;
  uint32_t extents[MAX_RANK];
  int64_t strides[MAX_RANK]; /* bytes */
  uint16_t box[MAX_RANK];
} tensor_map;
_Static_assert(sizeof(tensor_map) <= 128, "a tensor map has 128 bytes");

typedef struct transfer {
  tensor_map map;
  int32_t at[MAX_RANK];
  char *shared;
  int64_t owner; /* the mbarrier of a load, the group of a store */
  int thread;
} transfer;

typedef struct transfers {
  transfer *items;
  int count, room;
} transfers;

static transfers loads, stores;
static int64_t store_groups[MAX_THREADS];

static launch *const L = &braid_gpu_current;

void braid_gpu_start_tensors(void) {
  loads.count = stores.count = 0;
  memset(store_groups, 0, sizeof store_groups);
}

void braid_gpu_free_tensors(void) {
  free(loads.items);
  free(stores.items);
  loads = stores = (transfers){NULL, 0, 0};
}

/* Of so many elements: a base that is not at a multiple of 16 bytes is moved to one before. */
EMULATED void braid_gpu_tensor_map(tensor_map *map, char *base, int32_t element, int32_t rank,
                                   int32_t swizzle, const int64_t *extents, const int64_t *strides,
                                   const int64_t *box) {
  *map = (tensor_map){base - (uintptr_t)base % CHUNK, element, rank, swizzle, {0}, {0}, {0}};
  for (int n = 0; n < rank; ++n) {
    bool far = n > 0 && strides[n] % CHUNK != 0;
    if (extents[n] < 1 || box[n] < 1 || box[n] > MAX_BOX || far)
      braid_gpu_fail("a tensor map with dim %d of %lld elements, %lld bytes apart, in boxes of "
                     "%lld",
                     n, (long long)extents[n], (long long)strides[n], (long long)box[n]);
    map->extents[n] = (uint32_t)extents[n];
    map->strides[n] = strides[n];
    map->box[n] = (uint16_t)box[n];
  }
  int64_t line = box[0] * element;
  bool known = swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == SWIZZLE_128;
  if (line % CHUNK != 0 || (swizzle != 0 && line != swizzle) || !known)
    braid_gpu_fail("a tensor map with lines of %lld bytes, swizzled by %d", (long long)line,
                   swizzle);
}

static int64_t box_bytes(const tensor_map *map) {
  int64_t bytes = map->element;
  for (int n = 0; n < map->rank; ++n)
    bytes *= map->box[n];
  return bytes;
}

static transfer *added(transfers *to) {
  if (to->count == to->room) {
    int room = to->room ? 2 * to->room : 16;
    transfer *larger = realloc(to->items, (size_t)room * sizeof *larger);
    if (larger == NULL) {
      braid_gpu_fail("out of memory for copies of tensors");
      return NULL;
    }
    to->items = larger;
    to->room = room;
  }
  return &to->items[to->count++];
}

/* Where a line of a box begins in global memory, and how many of its bytes are inside. */
typedef struct line {
  char *global;
  int64_t before, bytes; /* bytes in front of the tensor, and in it */
} line;

static int64_t lines_of(const tensor_map *map) {
  int64_t count = 1;
  for (int n = 1; n < map->rank; ++n)
    count *= map->box[n];
  return count;
}

static line line_of(const transfer *own, int64_t number) {
  const tensor_map *map = &own->map;
  line found = {map->base, 0, 0};
  for (int n = 1; n < map->rank; ++n) {
    int64_t at = own->at[n] + number % map->box[n];
    number /= map->box[n];
    if (at < 0 || at >= map->extents[n])
      return (line){NULL, map->box[0] * map->element, 0};
    found.global += at * map->strides[n];
  }
  int64_t first = own->at[0], last = first + map->box[0];
  int64_t begin = first < 0 ? 0 : first, end = last > map->extents[0] ? map->extents[0] : last;
  if (end < begin)
    end = begin;
  found.before = (begin - first) * map->element;
  found.bytes = (end - begin) * map->element;
  found.global += begin * map->element;
  return found;
}

/* Where a byte of a box lies. */
static char *place_of(const transfer *own, int64_t byte) {
  char *plain = own->shared + byte;
  if (own->map.swizzle == 0)
    return plain;
  uintptr_t chunks = (uintptr_t)own->map.swizzle / CHUNK;
  uintptr_t turn = (uintptr_t)plain / SWIZZLE_128 % chunks * CHUNK;
  return own->shared + (int64_t)(((uintptr_t)plain ^ turn) - (uintptr_t)own->shared);
}

static bool is_valid(const transfer *own) {
  /* Chunks of 16 bytes are exchanged within 8 lines. */
  int64_t alignment = own->map.swizzle ? 8 * own->map.swizzle : SWIZZLE_128;
  if ((uintptr_t)own->shared % (uintptr_t)alignment == 0)
    return true;
  braid_gpu_fail("a copy of a tensor at %p in shared memory, which is not aligned",
                 (const void *)own->shared);
  return false;
}

static void load(char *shared, const tensor_map *map, const int32_t *at, const char *barrier) {
  transfer *own = added(&loads);
  if (own == NULL)
    return;
  *own = (transfer){.map = *map, .shared = shared, .thread = L->thread};
  memcpy(own->at, at, (size_t)map->rank * sizeof *at);
  own->owner = braid_gpu_mbarrier_for_copy(barrier);
  if (!is_valid(own))
    return;
  for (int64_t n = 0; n < box_bytes(map); n += CHUNK)
    braid_gpu_begin_copy(shared + n, CHUNK);
  for (int64_t n = 0; n < lines_of(map); ++n) {
    line from = line_of(own, n);
    if (from.bytes > 0)
      braid_gpu_read(from.global, from.bytes, 1);
  }
  braid_gpu_mbarrier_wake((int)own->owner);
}

static void land_load(const transfer *own) {
  int64_t bytes = box_bytes(&own->map), line_bytes = bytes / lines_of(&own->map);
  uint32_t phase = braid_gpu_mbarrier_phase((int)own->owner) + 1;
  int64_t writer = L->threads + MAX_WARPS + own->owner;
  for (int64_t n = 0; n < lines_of(&own->map); ++n) {
    line from = line_of(own, n);
    for (int64_t b = 0; b < line_bytes; ++b) {
      bool inside = b >= from.before && b < from.before + from.bytes;
      *place_of(own, n * line_bytes + b) = inside ? from.global[b - from.before] : 0;
    }
  }
  braid_gpu_land_copy(own->shared, bytes, (int32_t)writer, phase);
}

bool braid_gpu_land_tensors(int barrier) {
  int kept = 0;
  int64_t landed = 0;
  for (int n = 0; n < loads.count; ++n) {
    if (loads.items[n].owner != barrier) {
      loads.items[kept++] = loads.items[n];
      continue;
    }
    land_load(&loads.items[n]);
    landed += box_bytes(&loads.items[n].map);
  }
  loads.count = kept;
  if (landed > 0)
    braid_gpu_mbarrier_land(barrier, landed);
  return landed > 0;
}

static void store(const tensor_map *map, const int32_t *at, char *shared) {
  transfer *own = added(&stores);
  if (own == NULL)
    return;
  *own = (transfer){.map = *map, .shared = shared, .thread = L->thread};
  memcpy(own->at, at, (size_t)map->rank * sizeof *at);
  own->owner = store_groups[L->thread];
  if (!is_valid(own))
    return;
  braid_gpu_async_read(shared, box_bytes(map));
  braid_gpu_set_storer(shared, box_bytes(map), L->thread + 1);
}

static void land_store(const transfer *own) {
  int64_t bytes = box_bytes(&own->map), line_bytes = bytes / lines_of(&own->map);
  braid_gpu_set_storer(own->shared, bytes, 0);
  for (int64_t n = 0; n < lines_of(&own->map); ++n) {
    line to = line_of(own, n);
    if (to.bytes == 0)
      continue;
    braid_gpu_write(to.global, to.bytes, 1);
    for (int64_t b = 0; b < to.bytes; ++b)
      to.global[b] = *place_of(own, n * line_bytes + to.before + b);
  }
}

static void land_stores(int64_t group) {
  int kept = 0;
  for (int n = 0; n < stores.count; ++n) {
    transfer *own = &stores.items[n];
    if (own->thread == L->thread && own->owner < group)
      land_store(own);
    else
      stores.items[kept++] = *own;
  }
  stores.count = kept;
}

void braid_gpu_check_stores(int thread) {
  for (int n = 0; n < stores.count; ++n)
    if (stores.items[n].thread == thread) {
      braid_gpu_fail("ends before its store of a tensor has read shared memory");
      return;
    }
}

#define LOAD(rank)                                                                                 \
  EMULATED void                                                                                    \
      braid_gpu_cp_async_bulk_tensor_##rank##d_shared__cluster_global_tile_mbarrier__complete_tx__bytes
#define STORE(rank)                                                                                \
  EMULATED void braid_gpu_cp_async_bulk_tensor_##rank##d_global_shared__cta_tile_bulk_group

LOAD(2)(char *to, const tensor_map *map, int32_t a, int32_t b, const char *barrier) {
  load(to, map, (int32_t[]){a, b}, barrier);
}
LOAD(3)(char *to, const tensor_map *map, int32_t a, int32_t b, int32_t c, const char *barrier) {
  load(to, map, (int32_t[]){a, b, c}, barrier);
}
LOAD(4)(char *to, const tensor_map *map, int32_t a, int32_t b, int32_t c, int32_t d,
        const char *barrier) {
  load(to, map, (int32_t[]){a, b, c, d}, barrier);
}
LOAD(5)(char *to, const tensor_map *map, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e,
        const char *barrier) {
  load(to, map, (int32_t[]){a, b, c, d, e}, barrier);
}
STORE(2)(const tensor_map *map, int32_t a, int32_t b, char *from) {
  store(map, (int32_t[]){a, b}, from);
}
STORE(3)(const tensor_map *map, int32_t a, int32_t b, int32_t c, char *from) {
  store(map, (int32_t[]){a, b, c}, from);
}
STORE(4)(const tensor_map *map, int32_t a, int32_t b, int32_t c, int32_t d, char *from) {
  store(map, (int32_t[]){a, b, c, d}, from);
}
STORE(5)(const tensor_map *map, int32_t a, int32_t b, int32_t c, int32_t d, int32_t e, char *from) {
  store(map, (int32_t[]){a, b, c, d, e}, from);
}

EMULATED void braid_gpu_cp_async_bulk_commit_group(void) { ++store_groups[L->thread]; }

EMULATED void braid_gpu_cp_async_bulk_wait_group_read(int32_t left) {
  land_stores(store_groups[L->thread] - left);
}

EMULATED void braid_gpu_prefetch_tensormap(const tensor_map *map) {
  if ((uintptr_t)map % MAP_ALIGNMENT != 0)
    braid_gpu_fail("a tensor map at %p, which is not aligned", (const void *)map);
}
