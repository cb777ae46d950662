/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Copies of a state, and going back to them.
 */
#ifndef BRAID_COPIES_H
#define BRAID_COPIES_H

#include "state.h"

/* A state as numbers, without `ends` and `stored`. */
typedef queue record;
void machine_save(machine *m, record *copy);
/* Goes back to a copy made before the op at `place`; uses are looked up anew. */
void machine_restore(machine *m, const record *copy, int32_t place);
/* Whether the same values are planned to be on the chip as in the copy. */
bool machine_has_residents_of(const machine *m, const record *copy);
/* When the units are free in a copy. */
const int64_t *record_free(const record *copy);

#endif
