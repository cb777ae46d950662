/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Memory: allocations with guards, pointer attributes, tensor maps.
 */
#define _GNU_SOURCE
#include "standin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const size_t PAGE = 4096, FILLED = (size_t)64 << 20, LARGE = (size_t)80 << 30;
static size_t used[MAX_DEVICES];

static size_t total(void) {
  const char *bytes = getenv("STANDIN_MEMORY");
  return bytes != NULL ? strtoull(bytes, NULL, 10) : LARGE;
}

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static void protect(int protection) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at->alive && at->kind == DEVICE_MEMORY)
      mprotect(at->base, pages(at->bytes), protection);
}

void open_memory(void) { protect(PROT_READ | PROT_WRITE); }

void close_memory(void) { protect(PROT_NONE); }

object *inside(kind kind, const void *start, size_t bytes, const char *what) {
  const char *first = start;
  for (object *at = objects; at != NULL; at = at->next) {
    if (at->kind != kind || first < at->base || first >= at->base + at->bytes + (bytes == 0))
      continue;
    if (!at->alive) {
      wrong(0, "%s is in memory that was freed", what);
      return NULL;
    }
    if ((size_t)(at->base + at->bytes - first) < bytes) {
      wrong(0, "%s of %zu bytes leaves its allocation, of which %zu are left", what, bytes,
            (size_t)(at->base + at->bytes - first));
      return NULL;
    }
    return at;
  }
  wrong(0, "%s (%p, %zu bytes) is not %s", what, start, bytes,
        kind == PINNED ? "pinned memory" : "memory of the device");
  return NULL;
}

result cuMemGetInfo_v2(size_t *available, size_t *whole) {
  result code = begin("cuMemGetInfo_v2", " ");
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  if (code == OK) {
    *whole = total();
    *available = total() - used[current_context()->device];
  }
  return finish(code);
}

result cuMemAlloc_v2(address *memory, size_t bytes) {
  result code = begin("cuMemAlloc_v2", "%zu", bytes);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK && bytes == 0)
    code = wrong(INVALID_VALUE, "0 bytes");
  if (code == OK && bytes > total() - used[current_context()->device])
    code = OUT_OF_MEMORY;
  if (code != OK)
    return finish(code);
  /* A page that nobody may touch behind it. */
  char *base = mmap(NULL, pages(bytes) + PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return finish(OUT_OF_MEMORY);
  memset(base, 0xff, bytes < FILLED ? bytes : FILLED); /* not numbers */
  mprotect(base, pages(bytes) + PAGE, PROT_NONE);
  object *made = add(DEVICE_MEMORY);
  made->base = base;
  made->bytes = bytes;
  used[made->device] += bytes;
  *memory = (address)(uintptr_t)base;
  return finish(OK);
}

result cuMemFree_v2(address memory) {
  result code = begin("cuMemFree_v2", "%#llx", (unsigned long long)memory);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code != OK)
    return finish(code);
  object *own = inside(DEVICE_MEMORY, (void *)(uintptr_t)memory, 1, "what is freed");
  if (own == NULL || own->base != (char *)(uintptr_t)memory)
    return finish(wrong(INVALID_VALUE, "it is not the begin of an allocation"));
  if (!is_idle())
    wrong(0, "work is under way that may use it");
  run_all();
  retire(own);
  mmap(own->base, pages(own->bytes) + PAGE, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0); /* never given again */
  used[own->device] -= own->bytes;
  return finish(OK);
}

result cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  result code = begin("cuMemHostAlloc", "%zu, %u", bytes, flags);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK && (bytes == 0 || flags > 7))
    code = wrong(INVALID_VALUE, "0 bytes, or unknown flags");
  if (code != OK)
    return finish(code);
  object *made = add(PINNED);
  made->bytes = bytes;
  made->base = aligned_alloc(PAGE, pages(bytes));
  memset(made->base, 0xff, bytes);
  *memory = made->base;
  return finish(OK);
}

result cuMemFreeHost(void *memory) {
  result code = begin("cuMemFreeHost", "%p", memory);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  object *own = code == OK ? inside(PINNED, memory, 1, "what is freed") : NULL;
  if (code == OK && (own == NULL || own->base != memory))
    code = wrong(INVALID_VALUE, "it is not the begin of an allocation");
  if (code == OK && !is_idle())
    wrong(0, "work is under way that may use it");
  if (code == OK) {
    retire(own);
    memset(own->base, 0xee, own->bytes); /* never given again */
  }
  return finish(code);
}

static result check_copy(const void *device, const void *host, size_t bytes, bool pinned) {
  if (bytes == 0)
    return wrong(INVALID_VALUE, "0 bytes");
  if (device != NULL && inside(DEVICE_MEMORY, device, bytes, "the device's side") == NULL)
    return INVALID_VALUE;
  if (pinned && inside(PINNED, host, bytes, "the host's side of an asynchronous copy") == NULL)
    return INVALID_VALUE;
  return OK;
}

result cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) {
  void *target = (void *)(uintptr_t)to;
  result code = begin("cuMemcpyHtoD_v2", "%p, %p, %zu", target, from, bytes);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK)
    code = check_copy(target, from, bytes, false);
  if (code == OK) {
    open_memory();
    memcpy(target, from, bytes);
    close_memory();
  }
  return finish(code);
}

result cuMemcpyDtoH_v2(void *to, address from, size_t bytes) {
  const void *source = (const void *)(uintptr_t)from;
  result code = begin("cuMemcpyDtoH_v2", "%p, %p, %zu", to, source, bytes);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK)
    code = check_copy(source, to, bytes, false);
  if (code == OK) {
    run_all();
    open_memory();
    memcpy(to, source, bytes);
    close_memory();
  }
  return finish(code);
}

static result copy_async(const char *call, void *to, const void *from, size_t bytes, void *handle,
                         bool to_device, bool from_device) {
  result code = begin(call, "%p, %p, %zu, %p", to, from, bytes, handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  if (code == OK && to_device)
    code = check_copy(to, from, bytes, !from_device);
  if (code == OK && from_device)
    code = check_copy(from, to, bytes, !to_device);
  if (code == OK)
    code = enqueue(handle, (work){.what = COPY, .to = to, .from = from, .bytes = bytes});
  return finish(code);
}

result cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *handle) {
  return copy_async("cuMemcpyHtoDAsync_v2", (void *)(uintptr_t)to, from, bytes, handle, true,
                    false);
}

result cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *handle) {
  return copy_async("cuMemcpyDtoHAsync_v2", to, (const void *)(uintptr_t)from, bytes, handle, false,
                    true);
}

result cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *handle) {
  return copy_async("cuMemcpyDtoDAsync_v2", (void *)(uintptr_t)to, (const void *)(uintptr_t)from,
                    bytes, handle, true, true);
}

/* For memory that the driver does not know, it returns that the value is invalid. */
/* Attributes of memory that is nobody's are zero, and of no device. */
result cuPointerGetAttributes(unsigned count, int *attributes, void **values, address pointer) {
  result code = begin("cuPointerGetAttributes", "%u, %#llx", count, (unsigned long long)pointer);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  if (code != OK)
    return finish(code);
  const char *at = (const char *)(uintptr_t)pointer;
  const object *found = objects;
  while (found != NULL &&
         (!found->alive || (found->kind != DEVICE_MEMORY && found->kind != PINNED) ||
          at < found->base || at >= found->base + found->bytes))
    found = found->next;
  for (unsigned a = 0; a < count; ++a) {
    if (attributes[a] == 2)
      *(unsigned *)values[a] = found == NULL ? 0 : found->kind == DEVICE_MEMORY ? 2 : 1;
    else if (attributes[a] == 9)
      *(int *)values[a] = found == NULL ? -2 : found->device;
    else
      return finish(wrong(INVALID_VALUE, "attribute %d is unknown", attributes[a]));
  }
  return finish(OK);
}

/* The rules of the driver's documentation. */
result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *start,
                              const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps, int interleave, int swizzle, int promotion,
                              int fill) {
  static const size_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  static const size_t spans[] = {0, 32, 64, 128};
  result code = begin("cuTensorMapEncodeTiled", "%p, %d, %u, %p, %d, %d", map, type, rank, start,
                      interleave, swizzle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  if (code != OK)
    return finish(code);
  if ((uintptr_t)map % 64 != 0)
    return finish(wrong(INVALID_VALUE, "the map is not aligned to 64 bytes"));
  if (type < 0 || type > 12 || rank < 1 || rank > 5 || interleave != 0 || swizzle < 0 ||
      swizzle > 3 || promotion < 0 || promotion > 3 || fill < 0 || fill > 1)
    return finish(wrong(INVALID_VALUE, "an enumeration or the rank is out of range"));
  if ((uintptr_t)start % 16 != 0)
    return finish(wrong(INVALID_VALUE, "the tensor is not aligned to 16 bytes"));
  size_t span = sizes[type] * extents[0];
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > (uint64_t)1 << 32 || box[d] == 0 || box[d] > 256 ||
        steps[d] == 0 || steps[d] > 8)
      return finish(wrong(INVALID_VALUE, "dim %u is out of range", d));
    if (d + 1 < rank && (strides[d] % 16 != 0 || strides[d] >= (uint64_t)1 << 40))
      return finish(wrong(INVALID_VALUE, "stride %u is %llu, no multiple of 16", d,
                          (unsigned long long)strides[d]));
    if (d > 0)
      span += strides[d - 1] * (extents[d] - 1);
  }
  size_t row = box[0] * sizes[type];
  if (row % 16 != 0 || (swizzle != 0 && row > spans[swizzle]))
    return finish(wrong(INVALID_VALUE, "a row of a box has %zu bytes", row));
  if (inside(DEVICE_MEMORY, start, span, "the tensor") == NULL)
    return finish(INVALID_VALUE);
  memset(map, 0, 128);
  memcpy(map, &start, sizeof start);
  return finish(OK);
}
