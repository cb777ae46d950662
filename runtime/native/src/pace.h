/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How many workers help on a busy machine.
 *
 * A worker that loses its CPU to another process in the middle of its work holds its team up for a
 * time slice, some milliseconds. If that happens, teams get smaller by that number for a while;
 * then they may grow again. A while becomes twice as long each time that this was too early.
 */
#ifndef BRAID_PACE_H
#define BRAID_PACE_H

/* How many of `wanted` workers a team should have now. */
int braid_pace_allowed(int wanted);

/* Notes that so many workers of a team competed for a CPU or were kept off it. */
void braid_pace_crowded(int workers, int crowded);

/* As if no team had existed. */
void braid_pace_reset(void);

#endif /* BRAID_PACE_H */
