/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef BRAID_SESSIONS_H
#define BRAID_SESSIONS_H

#include "internal.h"

/* How many states a model has: descriptors before version 16 do not say. */
int64_t braid_state_count(const braid_model_v2 *descriptor);

/* The first state of a descriptor that the runtime cannot rely on, -1 where all are right. */
int64_t braid_find_wrong_state(const braid_model_v2 *descriptor);

#endif
