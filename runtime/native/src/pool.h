/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The threads of the runtime: workers, which sit idle until a caller gathers a team of them.
 *
 * A caller reserves idle workers, offers each a seat, works itself, withdraws the seats of workers
 * that have not started, and waits for the others. It never waits for a thread that has not
 * started, and a started worker waits for no other thread. So nested teams, and teams of several
 * callers, cannot block each other.
 */
#ifndef BRAID_POOL_H
#define BRAID_POOL_H

#include "braid/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>

/* The most threads that a team has. */
enum { BRAID_MAX_TEAM = 256 };

typedef struct braid_team braid_team;
typedef struct braid_worker braid_worker;

/* A place in a team, and the range of units of the work that belong to it. */
typedef struct braid_seat {
  _Alignas(64) _Atomic uint64_t units; /* see parallel.c */
  braid_team *team;
  braid_worker *worker; /* who was offered it; NULL for the caller's own, which is the first */
} braid_seat;

/* Work, and those who do it. Lives on the caller's stack. */
struct braid_team {
  void (*work)(braid_seat *seat); /* what each member does */
  braid_body body;
  void *ctx;
  int64_t count;                 /* iterations */
  int64_t unit_count;            /* into which they are divided */
  int size;                      /* seats, with the caller's */
  int cpu;                       /* that the caller ran on when it offered the seats */
  unsigned float_mode;           /* the caller's */
  bool must_come;                /* seats are not withdrawn, and workers do not decline them */
  _Alignas(64) atomic_uint left; /* workers that are not done, and whether the caller sleeps */
  atomic_int homeless;           /* workers that found no CPU but the caller's */
  atomic_int preempted;          /* workers that lost their CPU while the caller waited for them */
  braid_seat seats[BRAID_MAX_TEAM];
};

/* Reserves up to `wanted` - 1 idle workers, makes missing ones, and sets size and members of the
 * seats. Every team that is gathered must be started. */
void braid_team_gather(braid_team *team, int64_t wanted);

/* Offers the seats. Their contents, and those of the team, must not change from here on. */
void braid_team_start(braid_team *team);

/* Returns when no worker is or will be at the team. The caller has done its own share. */
void braid_team_finish(braid_team *team);

#endif /* BRAID_POOL_H */
