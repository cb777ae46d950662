/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which values are on the chip when: see residency_plan.py.
 */
#ifndef BRAID_PLAN_H
#define BRAID_PLAN_H

#include "state.h"

/* Plans the op at `place`. Returns whether its values fit. */
bool plan_step(machine *m, int32_t place);
/* How many uses of a value come before `place`. */
int32_t uses_before(const machine *m, int32_t v, int32_t place);
/* The first place from `place` on where a value is read, or NEVER. */
int32_t use_from(const machine *m, int32_t v, int32_t place);

#endif
