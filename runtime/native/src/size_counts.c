/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements
 * in Data Streams", ICDT 2005): if the table is full, new sizes replace those with the least count
 * and inherit it, so the new count may be too high by that. Sizes of more than one in
 * BRAID_MOST_PROFILED_SIZES runs are never lost.
 */
#include "size_counts.h"

#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = BRAID_MOST_PROFILED_SIZES };

typedef struct entry {
  uint64_t hash, count, error;
} entry;

struct braid_size_counts {
  pthread_mutex_t lock;      /* whoever reads a profile does so while the model runs */
  int64_t dims, count, last; /* `last` is the entry of the last run: the next is often alike */
  entry entries[MOST];
  int64_t sizes[]; /* `dims` of each entry */
};

braid_size_counts *braid_size_counts_create(int64_t dims) {
  braid_size_counts *counts = calloc(1, sizeof *counts + (size_t)dims * MOST * sizeof(int64_t));
  if (counts == NULL)
    return NULL;
  pthread_mutex_init(&counts->lock, NULL);
  counts->dims = dims;
  return counts;
}

void braid_size_counts_free(braid_size_counts *counts) {
  if (counts != NULL)
    pthread_mutex_destroy(&counts->lock);
  free(counts);
}

static bool is_entry(const braid_size_counts *counts, int64_t i, uint64_t hash,
                     const int64_t *sizes) {
  return counts->entries[i].hash == hash &&
         braid_same_shape(counts->dims, counts->sizes + i * counts->dims, sizes);
}

/* The entry of these sizes, else a new one, or the one with the least count. */
static int64_t find(braid_size_counts *counts, uint64_t hash, const int64_t *sizes) {
  if (counts->last < counts->count && is_entry(counts, counts->last, hash, sizes))
    return counts->last;
  int64_t least = 0;
  for (int64_t i = 0; i < counts->count; ++i) {
    if (is_entry(counts, i, hash, sizes))
      return i;
    if (counts->entries[i].count < counts->entries[least].count)
      least = i;
  }
  int64_t place = counts->count < MOST ? counts->count++ : least;
  entry *own = &counts->entries[place];
  *own = (entry){hash, own->count, own->count};
  if (counts->dims > 0)
    memcpy(counts->sizes + place * counts->dims, sizes, (size_t)counts->dims * sizeof *sizes);
  return place;
}

void braid_size_counts_add(braid_size_counts *counts, const int64_t *sizes) {
  uint64_t hash = braid_digest(sizes, (size_t)counts->dims * sizeof *sizes);
  pthread_mutex_lock(&counts->lock);
  counts->last = find(counts, hash, sizes);
  ++counts->entries[counts->last].count;
  pthread_mutex_unlock(&counts->lock);
}

void braid_size_counts_reset(braid_size_counts *counts) {
  if (counts == NULL)
    return;
  pthread_mutex_lock(&counts->lock);
  counts->count = counts->last = 0;
  memset(counts->entries, 0, sizeof counts->entries);
  pthread_mutex_unlock(&counts->lock);
}

int64_t braid_size_counts_read(braid_size_counts *counts, int64_t capacity, int64_t *sizes,
                               uint64_t *runs, uint64_t *errors) {
  pthread_mutex_lock(&counts->lock);
  int64_t count = counts->count < capacity ? counts->count : capacity;
  for (int64_t i = 0; i < count; ++i) {
    runs[i] = counts->entries[i].count;
    errors[i] = counts->entries[i].error;
  }
  if (count > 0 && counts->dims > 0)
    memcpy(sizes, counts->sizes, (size_t)(count * counts->dims) * sizeof *sizes);
  pthread_mutex_unlock(&counts->lock);
  return count;
}
