/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Operations of all lanes of a warp: shuffles, votes, barriers. The last one to come does it for
 * all. Semantics: PTX ISA, sections "shfl.sync", "vote.sync" and "bar.warp.sync".
 */
#include "emulator.h"

#include <string.h>

static launch *const L = &braid_gpu_current;

static bool has_lane(int thread) { return thread < L->threads && L->fibers[thread].state != ENDED; }

/* Runs the exchange that a thread of the warp waits in, if all of its lanes are there. */
static bool run_if_complete(int first, const exchange *of) {
  exchange *lanes[WARP] = {NULL};
  uint32_t there = 0;
  for (int lane = 0; lane < WARP; ++lane) {
    if (!(of->members >> lane & 1) || !has_lane(first + lane))
      continue;
    exchange *own = L->fibers[first + lane].exchange;
    if (own == NULL || own->run != of->run || own->members != of->members)
      return false;
    lanes[lane] = own;
    there |= (uint32_t)1 << lane;
  }
  of->run(lanes, there);
  for (int lane = 0; lane < WARP; ++lane)
    if (there >> lane & 1) {
      fiber *own = &L->fibers[first + lane];
      own->exchange = NULL;
      own->state = READY;
    }
  return true;
}

void braid_gpu_exchange(exchange *own) {
  int lane = L->thread % WARP;
  if (!(own->members >> lane & 1))
    braid_gpu_fail("%s for lanes %#x, of which this one, %d, is not", own->name, own->members,
                   lane);
  L->fibers[L->thread].exchange = own;
  if (!run_if_complete(L->thread - lane, own))
    braid_gpu_wait(IN_WARP);
}

void braid_gpu_leave_warp(int thread) {
  int first = thread - thread % WARP;
  for (int lane = 0; lane < WARP && first + lane < L->threads; ++lane) {
    fiber *at = &L->fibers[first + lane];
    if (at->state == IN_WARP && run_if_complete(first, at->exchange))
      return;
  }
}

/* ---- Shuffles ---- */

typedef enum direction { UP, DOWN, BUTTERFLY, INDEXED } direction;

/* in: the value, how far, the bounds of segments, the direction; out: the value, in bounds. */
static void shuffle(exchange *const lanes[WARP], uint32_t members) {
  uint32_t values[WARP] = {0};
  for (int lane = 0; lane < WARP; ++lane)
    if (members >> lane & 1)
      values[lane] = lanes[lane]->in[0];
  for (int lane = 0; lane < WARP; ++lane) {
    if (!(members >> lane & 1))
      continue;
    exchange *own = lanes[lane];
    int by = own->in[1] & 31, clamp = own->in[2] & 31, mask = own->in[2] >> 8 & 31;
    int highest = (lane & mask) | (clamp & ~mask & 31), lowest = lane & mask, from = lane;
    bool inside = false;
    switch ((direction)own->in[3]) {
    case UP:
      from = lane - by, inside = from >= highest;
      break;
    case DOWN:
      from = lane + by, inside = from <= highest;
      break;
    case BUTTERFLY:
      from = lane ^ by, inside = from <= highest;
      break;
    case INDEXED:
      from = lowest | (by & ~mask & 31), inside = from <= highest;
      break;
    }
    if (!inside)
      from = lane;
    if (!(members >> from & 1))
      braid_gpu_fail("lane %d takes a value from lane %d, which does not take part", lane, from);
    own->out[0] = values[from & 31];
    own->out[1] = inside;
  }
}

typedef struct moved {
  uint32_t value;
  bool inside; /* of the segment: else it is the lane's own */
} moved;

static moved shuffled(direction where, int32_t members, uint32_t value, int32_t by,
                      int32_t bounds) {
  exchange own = {.name = "a shuffle", .run = shuffle, .members = (uint32_t)members};
  own.in[0] = value;
  own.in[1] = (uint32_t)by;
  own.in[2] = (uint32_t)bounds;
  own.in[3] = where;
  braid_gpu_exchange(&own);
  return (moved){own.out[0], own.out[1] != 0};
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* As generated code takes a pair: it gives the address. */
typedef struct moved_integer {
  int32_t value;
  uint8_t inside;
} moved_integer;
typedef struct moved_float {
  float value;
  uint8_t inside;
} moved_float;

#define SHUFFLE(name, where)                                                                       \
  EMULATED int32_t braid_gpu_shfl_sync_##name##_i32(int32_t members, int32_t value, int32_t by,    \
                                                    int32_t bounds) {                              \
    return (int32_t)shuffled(where, members, (uint32_t)value, by, bounds).value;                   \
  }                                                                                                \
  EMULATED float braid_gpu_shfl_sync_##name##_f32(int32_t members, float value, int32_t by,        \
                                                  int32_t bounds) {                                \
    return float_of(shuffled(where, members, bits_of(value), by, bounds).value);                   \
  }                                                                                                \
  EMULATED void braid_gpu_shfl_sync_##name##_i32p(moved_integer *result, int32_t members,          \
                                                  int32_t value, int32_t by, int32_t bounds) {     \
    moved got = shuffled(where, members, (uint32_t)value, by, bounds);                             \
    *result = (moved_integer){(int32_t)got.value, got.inside};                                     \
  }                                                                                                \
  EMULATED void braid_gpu_shfl_sync_##name##_f32p(moved_float *result, int32_t members,            \
                                                  float value, int32_t by, int32_t bounds) {       \
    moved got = shuffled(where, members, bits_of(value), by, bounds);                              \
    *result = (moved_float){float_of(got.value), got.inside};                                      \
  }

SHUFFLE(up, UP)
SHUFFLE(down, DOWN)
SHUFFLE(bfly, BUTTERFLY)
SHUFFLE(idx, INDEXED)

/* ---- Votes ---- */

static void vote(exchange *const lanes[WARP], uint32_t members) {
  uint32_t ballot = 0;
  for (int lane = 0; lane < WARP; ++lane)
    if (members >> lane & 1 && lanes[lane]->in[0])
      ballot |= (uint32_t)1 << lane;
  for (int lane = 0; lane < WARP; ++lane)
    if (members >> lane & 1) {
      lanes[lane]->out[0] = ballot;
      lanes[lane]->out[1] = members;
    }
}

static exchange voted(int32_t members, bool value) {
  exchange own = {.name = "a vote", .run = vote, .members = (uint32_t)members};
  own.in[0] = value;
  braid_gpu_exchange(&own);
  return own;
}

EMULATED int32_t braid_gpu_vote_ballot_sync(int32_t members, bool value) {
  return (int32_t)voted(members, value).out[0];
}

EMULATED bool braid_gpu_vote_any_sync(int32_t members, bool value) {
  return voted(members, value).out[0] != 0;
}

EMULATED bool braid_gpu_vote_all_sync(int32_t members, bool value) {
  exchange own = voted(members, value);
  return own.out[0] == own.out[1];
}

/* ---- The barrier of a warp, which orders its accesses ---- */

static void pass_barrier(exchange *const lanes[WARP], uint32_t members) {
  (void)lanes;
  braid_gpu_join_clocks(L->thread - L->thread % WARP, members);
  ++L->warp_time[L->thread / WARP];
}

EMULATED void braid_gpu_bar_warp_sync(int32_t members) {
  exchange own = {.name = "a barrier of a warp", .run = pass_barrier};
  own.members = (uint32_t)members;
  braid_gpu_exchange(&own);
}
