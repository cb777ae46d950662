/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * After a change the schedule goes on from the copy before it, and ends as soon as it is seen to be
 * as before, or too late. Evictions and loads before the change may depend on uses inside of it, so
 * the time of a change is an estimate until the next reset.
 */
#include "timeline.h"
#include "machine.h"
#include "plan.h"
#include "undo.h"

#include <stdlib.h>
#include <string.h>

/* Ops behind a change after which a delay of the busiest unit is taken to stay. */
enum { SETTLED = 128 };

static int64_t max_free(const machine *m) {
  int64_t latest = 0;
  for (int32_t i = 0; i < unit_count(m->chip); ++i)
    latest = m->free[i] > latest ? m->free[i] : latest;
  return latest;
}

static int64_t unit_work(const braid_chip *chip, int32_t op, int32_t unit) {
  int64_t work = 0;
  for (int32_t i = chip->stages.begin[op]; i < chip->stages.begin[op + 1]; ++i)
    work += chip->stages.item[i] == unit ? chip->times[i] : 0;
  return work;
}

/* The times of the units of a kind, together. */
static int64_t sum_of(const braid_chip *chip, const int64_t *free, int32_t kind) {
  int64_t sum = 0;
  for (int32_t i = chip->slots[kind]; i < chip->slots[kind + 1]; ++i)
    sum += free[i];
  return sum;
}

static int32_t busiest_unit(const braid_chip *chip) {
  int32_t busiest = 0;
  int64_t most = -1;
  for (int32_t unit = 0; unit < chip->units; ++unit) {
    int64_t work = 0;
    for (int32_t op = 0; op < chip->ops; ++op)
      work += unit_work(chip, op, unit);
    work /= chip->slots[unit + 1] - chip->slots[unit];
    if (work > most) {
      most = work;
      busiest = unit;
    }
  }
  return busiest;
}

braid_timeline *braid_timeline_open(const braid_chip *chip, int32_t ahead) {
  braid_timeline *t = calloc(1, sizeof *t);
  if (!t)
    return NULL;
  size_t ops = (size_t)chip->ops, number = sizeof(int32_t);
  t->chip = chip;
  t->busiest = busiest_unit(chip);
  t->blocks = (chip->ops + SPACING - 1) / SPACING;
  size_t blocks = (size_t)t->blocks;
  t->schedule.order = calloc(ops + 1, number);
  t->schedule.uses = calloc((size_t)chip->users.begin[chip->values] + 1, number);
  t->copies = calloc(blocks + 1, sizeof *t->copies);
  t->spare = calloc(blocks + 1, sizeof *t->spare);
  t->waiting = calloc(blocks + 1, sizeof *t->waiting);
  t->window = calloc(ops + 1, number);
  t->next = calloc((size_t)chip->values + 1, number);
  bool complete = machine_open(&t->machine, chip, &t->schedule, ahead) && t->schedule.order &&
                  t->schedule.uses && t->copies && t->spare && t->waiting && t->window;
  if (complete)
    return t;
  braid_timeline_close(t);
  return NULL;
}

void braid_timeline_close(braid_timeline *t) {
  if (!t)
    return;
  machine_close(&t->machine);
  for (int32_t i = 0; i <= t->blocks; ++i) {
    if (t->copies)
      free(t->copies[i].item);
    if (t->spare)
      free(t->spare[i].item);
  }
  free(t->schedule.order);
  free(t->schedule.uses);
  free(t->copies);
  free(t->spare);
  free(t->waiting);
  free(t->window);
  free(t->next);
  free(t);
}

/* ---- Orders and uses ---- */

/* Puts `ops` at the positions from `begin` on, which held the same ops in any order. */
static void put(braid_timeline *t, int32_t begin, int32_t count, const int32_t *ops) {
  const braid_lists *reads = &t->chip->reads, *users = &t->chip->users;
  for (int32_t i = 0; i < count; ++i)
    for (int32_t j = reads->begin[ops[i]]; j < reads->begin[ops[i] + 1]; ++j)
      t->next[reads->item[j]] = uses_before(&t->machine, reads->item[j], begin);
  for (int32_t i = 0; i < count; ++i) {
    t->schedule.order[begin + i] = ops[i];
    for (int32_t j = reads->begin[ops[i]]; j < reads->begin[ops[i] + 1]; ++j) {
      int32_t v = reads->item[j];
      t->schedule.uses[users->begin[v] + t->next[v]++] = begin + i;
    }
  }
}

/* ---- The whole schedule ---- */

static int32_t block_end(const braid_timeline *t, int32_t block) {
  int32_t end = (block + 1) * SPACING;
  return end < t->chip->ops ? end : t->chip->ops;
}

/* The ops that have run where a block ends; there are more that are planned. */
static int32_t has_run(const braid_timeline *t, int32_t planned) {
  if (planned == t->chip->ops)
    return planned;
  return planned > t->machine.ahead ? planned - t->machine.ahead : 0;
}

static void note_waiting(braid_timeline *t) {
  int64_t sum = 0;
  int32_t place = 0;
  for (int32_t block = 0; block < t->blocks; ++block) {
    const int64_t *old = record_free(&t->copies[block]), *new = record_free(&t->copies[block + 1]);
    int64_t work = 0;
    for (; place < has_run(t, block_end(t, block)); ++place)
      work += unit_work(t->chip, t->schedule.order[place], t->busiest);
    sum += sum_of(t->chip, new, t->busiest) - sum_of(t->chip, old, t->busiest) - work;
    t->waiting[block] = sum;
  }
}

int64_t braid_timeline_reset(braid_timeline *t, const int32_t *order) {
  machine *m = &t->machine;
  m->out_of_memory = false;
  put(t, 0, t->chip->ops, order);
  m->undoable = false;
  machine_enter(m);
  machine_save(m, &t->copies[0]);
  for (int32_t block = 0; block < t->blocks; ++block) {
    for (int32_t place = block * SPACING; place < block_end(t, block); ++place)
      if (!machine_step(m, place))
        return m->out_of_memory ? BRAID_OUT_OF_MEMORY : -1 - (int64_t)order[place];
    if (block_end(t, block) == t->chip->ops)
      machine_finish(m);
    machine_save(m, &t->copies[block + 1]);
  }
  if (m->out_of_memory)
    return BRAID_OUT_OF_MEMORY;
  note_waiting(t);
  return t->value = max_free(m);
}

/* ---- Changes ---- */

typedef enum { UNKNOWN, SAME, TOO_LATE } verdict;

static verdict compare(const braid_timeline *t, const record *copy, int64_t slack, bool settled) {
  const machine *m = &t->machine;
  const int64_t *old = record_free(copy);
  bool same = true, all_late = true;
  for (int32_t i = 0; i < unit_count(t->chip); ++i) {
    same = same && m->free[i] == old[i];
    all_late = all_late && m->free[i] - old[i] > slack;
  }
  if (same && machine_has_residents_of(m, copy))
    return SAME;
  const int32_t *slots = t->chip->slots + t->busiest;
  int64_t late = sum_of(t->chip, m->free, t->busiest) - sum_of(t->chip, old, t->busiest);
  if (all_late || (settled && late / (slots[1] - slots[0]) > slack))
    return TOO_LATE;
  return UNKNOWN;
}

bool timeline_change(braid_timeline *t, int32_t begin, int32_t count, const int32_t *ops,
                     int64_t limit) {
  machine *m = &t->machine;
  memcpy(t->window, t->schedule.order + begin, (size_t)count * sizeof *ops);
  put(t, begin, count, ops);
  int32_t first = begin / SPACING, block = first;
  int64_t value = t->value;
  machine_restore(m, &t->copies[first], first * SPACING);
  verdict found = m->out_of_memory ? TOO_LATE : UNKNOWN;
  m->undoable = true;
  for (; block < t->blocks && found == UNKNOWN; ++block) {
    int32_t end = block_end(t, block);
    for (int32_t place = block * SPACING; place < end && found != TOO_LATE; ++place)
      if (!machine_step(m, place))
        found = TOO_LATE;
    if (found == TOO_LATE)
      break;
    if (end == t->chip->ops) {
      machine_finish(m);
      value = max_free(m);
      found = value > limit ? TOO_LATE : UNKNOWN;
    } else {
      int32_t behind = end - m->ahead - (begin + count);
      if (behind >= 0)
        found = compare(t, &t->copies[block + 1], limit - t->value, behind >= SETTLED);
    }
    machine_save(m, &t->spare[block + 1]);
  }
  if (found == TOO_LATE || m->out_of_memory) {
    machine_undo(m);
    put(t, begin, count, t->window);
    return false;
  }
  machine_keep(m);
  t->value = value;
  for (int32_t i = first + 1; i <= block; ++i) {
    record kept = t->copies[i];
    t->copies[i] = t->spare[i];
    t->spare[i] = kept;
  }
  return true;
}
