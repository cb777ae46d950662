/* Counts the allocations of the process, for LD_PRELOAD: bytes in use now, and their maximum since
 * the last reset. Sizes are those that the allocator rounds up to. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_llong in_use, peak;

static void *added(void *memory) {
  long long now = atomic_fetch_add(&in_use, (long long)malloc_usable_size(memory)) +
                  (long long)malloc_usable_size(memory);
  long long most = atomic_load(&peak);
  while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {
  }
  return memory;
}

long long allocation_reset(void) {
  atomic_store(&peak, atomic_load(&in_use));
  return atomic_load(&in_use);
}

long long allocation_peak(void) { return atomic_load(&peak); }

void *malloc(size_t size) { return added(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return added(__libc_calloc(count, size)); }

void *realloc(void *memory, size_t size) {
  atomic_fetch_sub(&in_use, (long long)malloc_usable_size(memory));
  return added(__libc_realloc(memory, size));
}

void *memalign(size_t alignment, size_t size) { return added(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory) {
  atomic_fetch_sub(&in_use, (long long)malloc_usable_size(memory));
  __libc_free(memory);
}
