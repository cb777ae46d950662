/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * When the units do what is planned: see residency.py.
 */
#ifndef BRAID_UNITS_H
#define BRAID_UNITS_H

#include "state.h"

/* Runs the first planned op, which is at `place`. */
void run_step(machine *m, int32_t place);

#endif
