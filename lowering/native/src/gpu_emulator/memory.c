/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Checks of accesses: bounds, alignment, and of shared memory races between barriers and bytes
 * that nobody has written. A byte of shared memory has a shadow that says who wrote and read it
 * last, and when; the time of a block goes on with its barriers, and that of a warp with its own.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { SEVERAL = -1 };

typedef struct shadow {
  uint32_t written, write_time; /* the epoch, and the time of the writer's warp */
  uint32_t read, read_time;
  int32_t writer, reader;
  int32_t copier; /* 1 + the thread whose copy has not landed, or 0 */
} shadow;

static shadow *shadows;
static int64_t shadow_count;

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
    shadows[i].copier = 0;
  memset(L->warp_time, 0, sizeof L->warp_time);
  return true;
}

/* Whether what thread `other` did at `time` is before what this one does by a barrier of a warp. */
static bool ordered(int32_t other, uint32_t time) {
  int warp = L->thread / WARP;
  return other == L->thread || (other >= 0 && other / WARP == warp && time < L->warp_time[warp]);
}

static void check_landed(const shadow *byte, const region *in, int64_t offset, const char *what) {
  if (byte->copier != 0)
    braid_gpu_fail("%s byte %lld of %s, where a copy of thread %d has not landed", what,
                   (long long)offset, in->name, byte->copier - 1);
}

static void check_shared_read(shadow *byte, const region *in, int64_t offset) {
  check_landed(byte, in, offset, "reads");
  if (byte->written < L->first_epoch)
    braid_gpu_fail("reads byte %lld of %s, which no thread of the block has written",
                   (long long)offset, in->name);
  if (byte->written == L->epoch && !ordered(byte->writer, byte->write_time))
    braid_gpu_fail("race: reads byte %lld of %s, which thread %d has written since the barrier",
                   (long long)offset, in->name, byte->writer);
  bool other = byte->read == L->epoch && !ordered(byte->reader, byte->read_time);
  byte->reader = other ? SEVERAL : L->thread;
  byte->read = L->epoch;
  byte->read_time = L->warp_time[L->thread / WARP];
}

static void check_shared_write(shadow *byte, const region *in, int64_t offset) {
  check_landed(byte, in, offset, "writes");
  if (byte->written == L->epoch && !ordered(byte->writer, byte->write_time))
    braid_gpu_fail("race: writes byte %lld of %s, which thread %d has written since the barrier",
                   (long long)offset, in->name, byte->writer);
  if (byte->read == L->epoch && !ordered(byte->reader, byte->read_time))
    braid_gpu_fail("race: writes byte %lld of %s, which another thread has read since the barrier",
                   (long long)offset, in->name);
  byte->writer = L->thread;
  byte->written = L->epoch;
  byte->write_time = L->warp_time[L->thread / WARP];
}

static void check_shared(const region *in, int64_t first, int64_t offset, int64_t bytes,
                         bool write) {
  for (int64_t i = 0; i < bytes; ++i) {
    shadow *byte = &shadows[first + offset + i];
    if (write)
      check_shared_write(byte, in, offset + i);
    else
      check_shared_read(byte, in, offset + i);
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

static void check(const char *address, int64_t bytes, int64_t alignment, bool write) {
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
        check_shared(in, first, offset, bytes, write);
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
  check(address, bytes, alignment, false);
}

EMULATED void braid_gpu_write(const char *address, int64_t bytes, int64_t alignment) {
  check(address, bytes, alignment, true);
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

static void set_copier(const char *address, int64_t bytes, int32_t copier) {
  shadow *own = shadow_of(address, bytes);
  for (int64_t i = 0; i < bytes; ++i)
    own[i].copier = copier;
}

void braid_gpu_begin_copy(const char *destination, int64_t bytes) {
  check(destination, bytes, bytes, true);
  set_copier(destination, bytes, L->thread + 1);
}

void braid_gpu_end_copy(const char *destination, int64_t bytes) {
  set_copier(destination, bytes, 0);
  check(destination, bytes, bytes, true);
}
