/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "units.h"
#include "undo.h"

#include <string.h>

/* When `size` bytes are free, for what is issued next. */
static int64_t reserve(machine *m, int64_t size) {
  while (m->credit < size && !queue_is_empty(&m->released)) {
    m->credit += queue_pop(&m->released);
    m->space = latest(m->space, queue_pop(&m->released));
  }
  m->credit -= size;
  return m->space;
}

static void release(machine *m, int32_t v) {
  value_set_drop(&m->there, v);
  machine_push(m, &m->released, m->chip->size[v]);
  machine_push(m, &m->released, m->until[v]);
}

/* When the unit of a kind that is the first to be free is so. */
static int64_t *first_free(machine *m, int32_t kind) {
  const int32_t *slots = m->chip->slots;
  int64_t *first = &m->free[slots[kind]], *end = &m->free[slots[kind + 1]];
  for (int64_t *unit = first + 1; unit < end; ++unit)
    first = *unit < *first ? unit : first;
  return first;
}

static void load(machine *m, int32_t v) {
  const braid_chip *chip = m->chip;
  int64_t *unit = first_free(m, chip->load_unit);
  int64_t after = latest(reserve(m, chip->size[v]), latest(m->stored[v], *unit));
  for (int32_t i = chip->sources.begin[v]; i < chip->sources.begin[v + 1]; ++i)
    after = latest(after, m->stored[chip->sources.item[i]]);
  *unit = m->since[v] = m->until[v] = after + chip->load[v];
  value_set_add(&m->there, v);
}

static void run_loads(machine *m, int32_t place, bool before) {
  queue *loads = &m->loads;
  while (!queue_is_empty(loads) && loads->item[loads->head + 1] == place &&
         loads->item[loads->head + 2] == before) {
    load(m, (int32_t)loads->item[loads->head]);
    loads->head += 3;
  }
}

static void store(machine *m, int32_t v, int64_t after) {
  int64_t *unit = first_free(m, m->chip->store_unit);
  machine_note(m, &m->stored[v]);
  *unit = m->stored[v] = latest(*unit, after) + m->chip->store[v];
  m->until[v] = latest(m->until[v], *unit);
}

/* Ops at other positions stay in the queue. */
static void run_evictions(machine *m, int32_t place) {
  queue *evicted = &m->evicted;
  int32_t kept = evicted->head;
  for (int32_t i = evicted->head; i < evicted->tail; i += EVICTION) {
    const int64_t *eviction = evicted->item + i;
    if (eviction[0] != place) {
      memmove(evicted->item + kept, eviction, EVICTION * sizeof *eviction);
      kept += EVICTION;
      continue;
    }
    int32_t v = (int32_t)eviction[1];
    if (eviction[2])
      store(m, v, m->since[v]);
    release(m, v);
  }
  evicted->tail = kept;
}

static int64_t compute(machine *m, int32_t op, int64_t ready) {
  const braid_lists *stages = &m->chip->stages;
  int64_t end = 0;
  for (int32_t i = stages->begin[op]; i < stages->begin[op + 1]; ++i) {
    int64_t *unit = first_free(m, stages->item[i]);
    int64_t start = latest(*unit, end);
    if (m->chip->waits[i])
      start = latest(start, ready);
    *unit = end = start + m->chip->times[i];
  }
  return latest(end, ready);
}

void run_step(machine *m, int32_t place) {
  const braid_chip *chip = m->chip;
  step next = *machine_steps(m);
  m->steps.head += STEP;
  int32_t op = (int32_t)next.op, over = (int32_t)next.over;
  run_evictions(m, place);
  run_loads(m, place, true);
  int64_t after = 0;
  for (int32_t i = chip->before.begin[op]; i < chip->before.begin[op + 1]; ++i)
    after = latest(after, m->ends[chip->before.item[i]]);
  for (int32_t i = chip->reads.begin[op]; i < chip->reads.begin[op + 1]; ++i)
    after = latest(after, m->since[chip->reads.item[i]]);
  if (over >= 0) {
    after = latest(after, m->until[over]);
    value_set_drop(&m->there, over);
  } else if (chip->makes.begin[op] < chip->makes.begin[op + 1]) {
    after = latest(after, reserve(m, next.made));
  }
  int64_t done = compute(m, op, after);
  machine_note(m, &m->ends[op]);
  m->ends[op] = done;
  run_loads(m, place, false);
  for (int32_t i = chip->reads.begin[op]; i < chip->reads.begin[op + 1]; ++i)
    m->until[chip->reads.item[i]] = latest(m->until[chip->reads.item[i]], done);
  for (int32_t i = chip->makes.begin[op]; i < chip->makes.begin[op + 1]; ++i) {
    int32_t v = chip->makes.item[i];
    value_set_add(&m->there, v);
    m->since[v] = m->until[v] = done;
    if (chip->output[v])
      store(m, v, done);
  }
  for (; next.deaths; --next.deaths)
    release(m, (int32_t)queue_pop(&m->dead));
}
