/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A chip from before the first op of an order until all ops have run.
 */
#ifndef BRAID_MACHINE_H
#define BRAID_MACHINE_H

#include "state.h"

/* Returns whether there is memory; close it in any case. */
bool machine_open(machine *m, const braid_chip *chip, const schedule *order, int32_t ahead);
void machine_close(machine *m);

/* Before the first op: present values take memory, those that are read first before others. */
void machine_enter(machine *m);
/* Plans the op at `place`, and runs the one to which no load is added any more. Returns whether
 * the values of the op fit. */
bool machine_step(machine *m, int32_t place);
/* Runs what is planned. */
void machine_finish(machine *m);

#endif
