/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Checks of accesses: bounds, alignment, and, for shared memory, races between barriers and bytes
 * that were never written. A byte of shared memory has a shadow that says who wrote and read it
 * last, and when; the time of a block advances at its barriers, and the time of a warp at its own.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { SEVERAL = -1, RESERVED = -1, WARPS_OF_GROUP = 4 };
typedef enum access { READ, WRITE, ATOMIC } access;

typedef struct shadow {
  uint32_t written, write_time; /* the epoch, and the time of the writer's warp */
  uint32_t read, read_time;
  uint32_t write_clock, read_clock; /* of writer and reader; see clocks.c */
  int32_t writer, reader;
  bool atomic, several;              /* since the barrier: only by atomics, of several threads */
  int32_t copier;                    /* 1 + the thread whose copy has not landed, or 0 */
  int32_t storer;                    /* 1 + the thread whose store of a tensor reads it, or 0 */
  uint32_t fence;                    /* 1 + the writer's fences before, or 0 for a landed copy */
  uint32_t products[MAX_WARPGROUPS]; /* the last product of each group that reads it */
} shadow;

static shadow *shadows;
static int64_t shadow_count;
static uint32_t fences[MAX_THREADS];
static uint32_t first_product[MAX_WARPGROUPS]; /* of the block */

static launch *const L = &braid_gpu_current;

bool braid_gpu_start_block(void) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < L->region_count; ++i)
    if (L->regions[i].kind == SHARED) {
      memset(L->regions[i].begin, 0xff, (size_t)L->regions[i].bytes); /* not numbers, mostly */
      bytes += L->regions[i].bytes;
    }
  if (bytes > shadow_count) {
    shadow *larger = realloc(shadows, (size_t)bytes * sizeof *shadows);
    if (larger == NULL)
      return false;
    memset(larger + shadow_count, 0, (size_t)(bytes - shadow_count) * sizeof *shadows);
    shadows = larger;
    shadow_count = bytes;
  }
  for (int64_t i = 0; i < bytes; ++i)
    shadows[i].copier = shadows[i].storer = 0;
  for (int group = 0; group < MAX_WARPGROUPS; ++group)
    first_product[group] = braid_gpu_products(group);
  memset(L->warp_time, 0, sizeof L->warp_time);
  return true;
}

/* Whether what `other` did is before what this thread does: by a barrier of their warp at `time`,
 * or since this one knows of `clock`. */
static bool ordered(int32_t other, uint32_t time, uint32_t clock) {
  int warp = L->thread / WARP;
  if (other == L->thread)
    return true;
  if (other >= 0 && other / WARP == warp && time < L->warp_time[warp])
    return true;
  return other >= 0 && braid_gpu_knows(other, clock);
}

/* Whether another thread has written a byte, and that write is not ordered before this access. */
static bool written_apart(const shadow *byte) {
  return byte->written == L->epoch &&
         (byte->several || !ordered(byte->writer, byte->write_time, byte->write_clock));
}

static void check_written(const shadow *byte, const region *in, int64_t offset) {
  if (byte->written < L->first_epoch)
    braid_gpu_fail("reads byte %lld of %s, which no thread of the block has written",
                   (long long)offset, in->name);
}

static void check_landed(const shadow *byte, const region *in, int64_t offset, const char *what) {
  if (byte->copier == RESERVED)
    braid_gpu_fail("%s byte %lld of %s, which is an mbarrier", what, (long long)offset, in->name);
  if (byte->copier != 0)
    braid_gpu_fail("%s byte %lld of %s, where a copy of thread %d has not landed", what,
                   (long long)offset, in->name, byte->copier - 1);
}

static void check_shared_read(shadow *byte, const region *in, int64_t offset) {
  check_landed(byte, in, offset, "reads");
  check_written(byte, in, offset);
  if (written_apart(byte))
    braid_gpu_fail("race: reads byte %lld of %s, which thread %d has written since the barrier",
                   (long long)offset, in->name, byte->writer);
  bool other = byte->read == L->epoch && !ordered(byte->reader, byte->read_time, byte->read_clock);
  byte->reader = other ? SEVERAL : L->thread;
  byte->read = L->epoch;
  byte->read_time = L->warp_time[L->thread / WARP];
  byte->read_clock = braid_gpu_clock();
}

/* Products of a warpgroup have read a byte where each of its warps is known to have waited. */
static void check_products(const shadow *byte, const region *in, int64_t offset) {
  for (int group = 0; group < MAX_WARPGROUPS; ++group)
    for (int warp = 0; warp < WARPS_OF_GROUP && byte->products[group] > first_product[group];
         ++warp)
      if (!braid_gpu_knows(L->threads + WARPS_OF_GROUP * group + warp, byte->products[group])) {
        braid_gpu_fail("race: writes byte %lld of %s, which a wgmma of warp %d may still read",
                       (long long)offset, in->name, WARPS_OF_GROUP * group + warp);
        return;
      }
}

/* Atomics of several threads do not race with each other. */
static void check_shared_write(shadow *byte, const region *in, int64_t offset, bool atomic) {
  check_landed(byte, in, offset, "writes");
  if (atomic)
    check_written(byte, in, offset);
  bool apart = written_apart(byte);
  if (apart && !(atomic && byte->atomic))
    braid_gpu_fail("race: writes byte %lld of %s, which thread %d has written since the barrier",
                   (long long)offset, in->name, byte->writer);
  if (byte->read == L->epoch && !ordered(byte->reader, byte->read_time, byte->read_clock))
    braid_gpu_fail("race: writes byte %lld of %s, which another thread has read since the barrier",
                   (long long)offset, in->name);
  if (byte->storer != 0)
    braid_gpu_fail("race: writes byte %lld of %s, which a store of a tensor of thread %d may read",
                   (long long)offset, in->name, byte->storer - 1);
  check_products(byte, in, offset);
  byte->atomic = atomic && (byte->atomic || byte->written != L->epoch);
  byte->several = apart;
  byte->writer = L->thread;
  byte->written = L->epoch;
  byte->write_clock = braid_gpu_clock();
  byte->fence = fences[L->thread] + 1;
  byte->write_time = L->warp_time[L->thread / WARP];
}

static void check_shared(const region *in, int64_t first, int64_t offset, int64_t bytes,
                         access kind) {
  for (int64_t i = 0; i < bytes; ++i) {
    shadow *byte = &shadows[first + offset + i];
    if (kind == READ)
      check_shared_read(byte, in, offset + i);
    else
      check_shared_write(byte, in, offset + i, kind == ATOMIC);
  }
}

static bool on_stack(const char *address, int64_t bytes) {
  const char *stack = braid_gpu_stack(L->thread);
  return address >= stack && address + bytes <= stack + STACK_BYTES;
}

/* Says how far an access is from the memory next to it. */
static void report_bounds(const char *address, int64_t bytes, bool write) {
  const region *nearest = NULL;
  int64_t least = INT64_MAX;
  for (int64_t i = 0; i < L->region_count; ++i) {
    const region *in = &L->regions[i];
    int64_t offset = address - in->begin;
    int64_t away = offset < 0 ? -offset : offset + bytes - in->bytes;
    if (away < least && (in->kind != READ_ONLY || !write || offset < 0)) {
      least = away;
      nearest = in;
    }
  }
  const char *what = write ? "writes" : "reads";
  if (nearest == NULL)
    braid_gpu_fail("%s %lld bytes at %p, and may use no memory", what, (long long)bytes,
                   (const void *)address);
  else
    braid_gpu_fail("%s %lld bytes at offset %lld of %s, which has %lld", what, (long long)bytes,
                   (long long)(address - nearest->begin), nearest->name, (long long)nearest->bytes);
}

/* ---- The data that is moved ---- */

enum { MAX_COUNTED = 64 };
static int64_t moved[MAX_COUNTED]; /* bytes of regions that are not shared memory */

/* Bytes that were read and written of a buffer of a kernel since it was asked last. */
EMULATED int64_t braid_gpu_moved_bytes(int64_t number) {
  int64_t since = moved[number];
  moved[number] = 0;
  return since;
}

static void check(const char *address, int64_t bytes, int64_t alignment, access kind) {
  bool write = kind != READ;
  int64_t first = 0; /* the region's first shadow */
  const region *refuses = NULL;
  if (((uintptr_t)address & (uintptr_t)(alignment - 1)) != 0)
    braid_gpu_fail("%s %lld bytes at %p, which is not aligned to %lld", write ? "writes" : "reads",
                   (long long)bytes, (const void *)address, (long long)alignment);
  for (int64_t i = 0; i < L->region_count; ++i) {
    const region *in = &L->regions[i];
    int64_t offset = address - in->begin;
    if (offset >= 0 && offset + bytes <= in->bytes) {
      if (in->kind == SHARED)
        check_shared(in, first, offset, bytes, kind);
      else if (i < MAX_COUNTED)
        moved[i] += bytes;
      if (in->kind != READ_ONLY || !write)
        return;
      refuses = in;
    }
    if (in->kind == SHARED)
      first += in->bytes;
  }
  if (on_stack(address, bytes))
    return;
  if (refuses != NULL)
    braid_gpu_fail("writes %lld bytes to %s, which is only read", (long long)bytes, refuses->name);
  report_bounds(address, bytes, write);
}

EMULATED void braid_gpu_read(const char *address, int64_t bytes, int64_t alignment) {
  check(address, bytes, alignment, READ);
}

EMULATED void braid_gpu_write(const char *address, int64_t bytes, int64_t alignment) {
  check(address, bytes, alignment, WRITE);
}

EMULATED void braid_gpu_atomic(const char *address, int64_t bytes, int64_t alignment) {
  check(address, bytes, alignment, ATOMIC);
}

/* The shadow of bytes of shared memory. */
static shadow *shadow_of(const char *address, int64_t bytes) {
  int64_t first = 0;
  for (int64_t i = 0; i < L->region_count; ++i) {
    const region *in = &L->regions[i];
    if (in->kind != SHARED)
      continue;
    int64_t offset = address - in->begin;
    if (offset >= 0 && offset + bytes <= in->bytes)
      return &shadows[first + offset];
    first += in->bytes;
  }
  braid_gpu_fail("copies to %p, which is not shared memory", (const void *)address);
  return NULL;
}

void braid_gpu_async_read(const char *address, int64_t bytes) {
  const shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i) {
    const shadow *byte = &own[i];
    if (i > 0 && byte->writer == byte[-1].writer && byte->written == byte[-1].written &&
        byte->write_clock == byte[-1].write_clock && byte->write_time == byte[-1].write_time &&
        byte->copier == byte[-1].copier && byte->fence == byte[-1].fence)
      continue;
    if (byte->copier != 0 || byte->written < L->first_epoch)
      braid_gpu_fail("reads shared memory at %p by a matrix or a tensor, where nothing has landed",
                     (const void *)(address + i));
    if (written_apart(byte))
      braid_gpu_fail("race: reads shared memory at %p by a matrix or a tensor, which %d has "
                     "written since the barrier",
                     (const void *)(address + i), byte->writer);
    if (byte->fence != 0 && byte->fence > fences[byte->writer])
      braid_gpu_fail("reads shared memory at %p by a matrix or a tensor, which thread %d has "
                     "written without fence.proxy.async",
                     (const void *)(address + i), byte->writer);
  }
}

void braid_gpu_set_storer(const char *address, int64_t bytes, int32_t storer) {
  shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i)
    own[i].storer = storer;
}

void braid_gpu_set_product(const char *address, int64_t bytes, int group, uint32_t product) {
  shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i)
    own[i].products[group] = product;
}

void braid_gpu_land_copy(const char *address, int64_t bytes, int32_t writer, uint32_t clock) {
  shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i) {
    own[i].copier = 0;
    own[i].writer = writer;
    own[i].written = L->epoch;
    own[i].write_clock = clock;
    own[i].fence = 0;
  }
}

uint32_t braid_gpu_fences(void) { return fences[L->thread]; }

uint32_t braid_gpu_fences_of(int thread) { return fences[thread]; }

EMULATED void braid_gpu_fence_proxy_async_shared__cta(void) { ++fences[L->thread]; }

EMULATED void braid_gpu_fence_mbarrier_init_release_cluster(void) { ++fences[L->thread]; }

char *braid_gpu_shared_at(int64_t low, int bits) {
  int64_t size = (int64_t)1 << bits;
  for (int64_t i = 0; i < L->region_count; ++i) {
    const region *in = &L->regions[i];
    int64_t offset = (low - (int64_t)(uintptr_t)in->begin) & (size - 1);
    if (in->kind == SHARED && offset < in->bytes)
      return in->begin + offset;
  }
  return NULL;
}

static void set_copier(const char *address, int64_t bytes, int32_t copier) {
  shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i)
    own[i].copier = copier;
}

void braid_gpu_reserve(const char *address, int64_t bytes) { set_copier(address, bytes, RESERVED); }

void braid_gpu_begin_copy(const char *destination, int64_t bytes) {
  check(destination, bytes, bytes, true);
  set_copier(destination, bytes, L->thread + 1);
}

void braid_gpu_end_copy(const char *destination, int64_t bytes) {
  set_copier(destination, bytes, 0);
  check(destination, bytes, bytes, true);
}
