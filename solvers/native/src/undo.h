/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The values of `ends` and `stored` before a change of the order.
 */
#ifndef BRAID_UNDO_H
#define BRAID_UNDO_H

#include "state.h"

/* Notes a number that is about to change, takes back all changes noted, or forgets them. */
void machine_note(machine *m, int64_t *where);
void machine_undo(machine *m);
void machine_keep(machine *m);

#endif
