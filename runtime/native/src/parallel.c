/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops and streams on a team of threads.
 *
 * A loop is cut into units. Each member of the team owns a run of chunks, so that its caches hold
 * what it wrote in the loop before. It takes chunks from the front, at first several at once. A
 * member without chunks steals from others, one by one from the back, whether or not these have
 * started (compare Blumofe and Leiserson, "Scheduling multithreaded computations by work stealing",
 * 1999). Streams may wait for each other: each member gets a run of them that it keeps, as one
 * unit.
 */
#include "internal.h"
#include "pool.h"

/* Units for each thread: fine enough that the last one delays a loop by little. */
enum { UNITS = 32 };

/* A thread takes this fraction of its own remaining chunks. */
enum { SHARE = 8 };

/* A run of units, in one word: the first, and the one behind the last. */
static uint64_t run_of(uint64_t first, uint64_t end) { return first << 32 | end; }
static uint64_t first_of(uint64_t run) { return run >> 32; }
static uint64_t end_of(uint64_t run) { return (uint32_t)run; }

/* floor(count * part / parts) without overflow. */
static int64_t bound(int64_t count, int64_t part, int64_t parts) {
  return count / parts * part + count % parts * part / parts;
}

static void run_units(const braid_team *team, uint64_t first, uint64_t end) {
  team->body(team->ctx, bound(team->count, (int64_t)first, team->unit_count),
             bound(team->count, (int64_t)end, team->unit_count));
}

static bool run_own(braid_seat *seat) {
  uint64_t run = atomic_load_explicit(&seat->units, memory_order_relaxed);
  uint64_t taken;
  do {
    if (first_of(run) >= end_of(run))
      return false;
    taken = first_of(run) + (end_of(run) - first_of(run) + SHARE - 1) / SHARE;
  } while (!atomic_compare_exchange_weak_explicit(&seat->units, &run, run_of(taken, end_of(run)),
                                                  memory_order_relaxed, memory_order_relaxed));
  run_units(seat->team, first_of(run), taken);
  return true;
}

static bool run_other(braid_team *team, braid_seat *victim) {
  uint64_t run = atomic_load_explicit(&victim->units, memory_order_relaxed);
  do {
    if (first_of(run) >= end_of(run))
      return false;
  } while (!atomic_compare_exchange_weak_explicit(&victim->units, &run,
                                                  run_of(first_of(run), end_of(run) - 1),
                                                  memory_order_relaxed, memory_order_relaxed));
  run_units(team, end_of(run) - 1, end_of(run));
  return true;
}

static void run_loop(braid_seat *seat) {
  braid_team *team = seat->team;
  while (run_own(seat))
    ;
  int own = (int)(seat - team->seats);
  for (int next = 1; next < team->size; ++next)
    while (run_other(team, &team->seats[(own + next) % team->size]))
      ;
}

static void run_range(braid_seat *seat) { run_own(seat); }

/* Lets a team, each member of which has so many units, do `work`, or the caller alone. */
static void run_on_team(const braid_env *env, braid_body body, void *ctx, int64_t n,
                        void (*work)(braid_seat *seat), int64_t units_each, bool must_come) {
  int64_t wanted = env->threads < n ? env->threads : n;
  braid_team team;
  team.size = 1;
  if (wanted > 1)
    braid_team_gather(&team, wanted);
  if (team.size == 1) {
    if (n > 0)
      body(ctx, 0, n);
    return;
  }
  int64_t units = (int64_t)team.size * units_each;
  team.work = work;
  team.body = body;
  team.ctx = ctx;
  team.count = n;
  team.unit_count = units < n ? units : n;
  team.must_come = must_come;
  for (int i = 0; i < team.size; ++i)
    atomic_init(&team.seats[i].units, run_of((uint64_t)bound(team.unit_count, i, team.size),
                                             (uint64_t)bound(team.unit_count, i + 1, team.size)));
  braid_team_start(&team);
  work(&team.seats[0]);
  braid_team_finish(&team);
}

void braid_parallel_for(const braid_env *env, braid_body body, void *ctx, int64_t n) {
  run_on_team(env, body, ctx, n, run_loop, UNITS, false);
}

void braid_run_inter_op(const braid_env *env, braid_body body, void *ctx, int64_t n) {
  run_on_team(env, body, ctx, n, run_range, 1, true);
}
