/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Launches as objects. One is freed when it has ended and no launch that depends on it is under
 * way, so that a loop takes no more memory the longer it runs.
 */
#include "launch.h"

#include "observer.h"

#include <stdlib.h>

enum { INDEX_BITS = 32 };

launch *braid_launch_find(braid_launches *launches, int64_t ticket) {
  if (ticket == BRAID_LAUNCH_ENDED)
    return NULL;
  int64_t index = ticket & (((int64_t)1 << INDEX_BITS) - 1);
  if (index >= launches->count)
    return NULL;
  launch *found = launches->all[index];
  return found->ticket == ticket && !found->free ? found : NULL;
}

void braid_launch_release(launch *one) {
  if (one->ended && one->dependents == 0)
    one->free = true;
}

void braid_launch_end(launch *one) {
  if (one->ended)
    return;
  one->ended = true;
  braid_submission *own = &one->submission;
  if (one->begin != 0)
    braid_trace_end(one->launches->env->observer->trace, BRAID_TRACE_LAUNCH, own->function,
                    own->nanoseconds, one->begin);
  int64_t device = one->launches->model->descriptor->functions[own->function].device;
  one->launches->devices[device].nanoseconds += own->nanoseconds;
  for (int64_t i = 0; i < own->after_count; ++i) {
    launch *before = (launch *)(uintptr_t)own->after[i];
    --before->dependents;
    braid_launch_end(before);
    braid_launch_release(before);
  }
  own->after_count = 0;
}

static launch *add_launch(braid_launches *launches) {
  if (launches->count == launches->capacity) {
    int64_t capacity = 2 * launches->capacity + 8;
    launch **all = realloc(launches->all, (size_t)capacity * sizeof(launch *));
    if (all == NULL)
      return NULL;
    launches->all = all;
    launches->capacity = capacity;
  }
  launch *added = calloc(1, sizeof *added);
  if (added == NULL)
    return NULL;
  added->launches = launches;
  added->ticket = launches->count;
  return launches->all[launches->count++] = added;
}

launch *braid_launch_take(braid_launches *launches, int64_t pointers) {
  launch *taken = NULL;
  for (int64_t i = 0; i < launches->count && taken == NULL; ++i)
    if (launches->all[i]->free)
      taken = launches->all[i];
  if (taken != NULL)
    taken->ticket += (int64_t)1 << INDEX_BITS;
  else if ((taken = add_launch(launches)) == NULL)
    return NULL;
  taken->free = true; /* until it is under way */
  if (pointers > taken->capacity) {
    void **lists = realloc(taken->lists, (size_t)pointers * sizeof(void *));
    if (lists == NULL)
      return NULL;
    taken->lists = lists;
    taken->capacity = pointers;
  }
  return taken;
}
