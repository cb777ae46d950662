/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "plan.h"

#include <string.h>

int32_t uses_before(const machine *m, int32_t v, int32_t place) {
  const braid_lists *users = &m->chip->users;
  const int32_t *uses = m->schedule->uses + users->begin[v];
  int32_t low = 0, high = users->begin[v + 1] - users->begin[v];
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (uses[middle] < place)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int32_t use_from(const machine *m, int32_t v, int32_t place) {
  int32_t index = m->chip->users.begin[v] + uses_before(m, v, place);
  return index < m->chip->users.begin[v + 1] ? m->schedule->uses[index] : NEVER;
}

static bool is_last_use(const machine *m, int32_t v, int32_t place) {
  return m->schedule->uses[m->chip->users.begin[v + 1] - 1] == place;
}

static void come(machine *m, int32_t v, bool dirty) {
  value_set_add(&m->resident, v);
  m->dirty[v] = dirty;
}

static int32_t overwritten(const machine *m, int32_t op, int32_t place) {
  const braid_lists *over = &m->chip->over;
  for (int32_t i = over->begin[op]; i < over->begin[op + 1]; ++i) {
    int32_t v = over->item[i];
    bool held = m->chip->kept[v] && value_set_has(&m->resident, v) && m->dirty[v];
    if (is_last_use(m, v, place) && !held)
      return v;
  }
  return -1;
}

/* Evicts the value that is used last, of several the one with the highest number. It goes as soon
 * as it is no longer read, at the latest before the op at `place`. */
static bool evict(machine *m, int32_t op, int32_t place) {
  const braid_lists *reads = &m->chip->reads;
  for (int32_t i = reads->begin[op]; i < reads->begin[op + 1]; ++i)
    m->mark[reads->item[i]] = 1;
  int32_t victim = -1;
  for (int32_t i = 0; i < m->resident.count; ++i) {
    int32_t v = m->resident.value[i];
    if (m->mark[v])
      continue;
    if (victim < 0 || m->next_use[v] > m->next_use[victim] ||
        (m->next_use[v] == m->next_use[victim] && v > victim))
      victim = v;
  }
  for (int32_t i = reads->begin[op]; i < reads->begin[op + 1]; ++i)
    m->mark[reads->item[i]] = 0;
  if (victim < 0)
    return false;
  int32_t begin = place - machine_pending(m), slot = m->touched[victim] + 1;
  slot = slot > begin ? slot : begin;
  for (int32_t between = slot - begin; between < place - begin; ++between)
    machine_steps(m)[between].room += m->chip->size[victim];
  machine_push(m, &m->evicted, slot);
  machine_push(m, &m->evicted, victim);
  machine_push(m, &m->evicted, m->dirty[victim]);
  m->used -= m->chip->size[victim];
  m->outside[victim] = slot;
  value_set_drop(&m->resident, victim);
  return true;
}

/* Issues the load of `v` as early as there is room; before the op at `place` at the latest. */
static void issue_load(machine *m, int32_t v, int32_t place) {
  const braid_chip *chip = m->chip;
  int32_t begin = place - machine_pending(m), slot = place;
  step *steps = machine_steps(m);
  if (slot > begin) {
    int32_t least = m->last > begin ? m->last : begin;
    least = m->outside[v] > least ? m->outside[v] : least;
    for (int32_t i = chip->sources.begin[v]; i < chip->sources.begin[v + 1]; ++i) {
      int32_t source = m->outside[chip->sources.item[i]];
      least = source > least ? source : least;
    }
    while (slot > least && steps[slot - 1 - begin].room >= chip->size[v])
      --slot;
  }
  m->last = slot;
  for (int32_t between = slot - begin; between < place - begin; ++between)
    steps[between].room -= chip->size[v];
  machine_push(m, &m->loads, v);
  machine_push(m, &m->loads, slot);
  machine_push(m, &m->loads, slot == place);
}

static void die(machine *m, int32_t v, step *planned) {
  m->used -= m->chip->size[v];
  value_set_drop(&m->resident, v);
  machine_push(m, &m->dead, v);
  ++planned->deaths;
}

/* Dead values leave, results arrive. */
static void leave(machine *m, int32_t place, step *planned) {
  const braid_chip *chip = m->chip;
  int64_t op = planned->op;
  for (int32_t i = chip->reads.begin[op]; i < chip->reads.begin[op + 1]; ++i) {
    int32_t v = chip->reads.item[i];
    m->touched[v] = place;
    m->next_use[v] = use_from(m, v, place + 1);
    if (m->next_use[v] != NEVER)
      continue;
    if (v == planned->over)
      value_set_drop(&m->resident, v);
    else if (!(chip->kept[v] && m->dirty[v]))
      die(m, v, planned);
  }
  for (int32_t i = chip->makes.begin[op]; i < chip->makes.begin[op + 1]; ++i) {
    int32_t v = chip->makes.item[i];
    come(m, v, !chip->output[v]);
    m->touched[v] = place;
    m->next_use[v] = use_from(m, v, place + 1);
    if (chip->output[v])
      m->outside[v] = place + 1;
    if (m->next_use[v] == NEVER && !(chip->kept[v] && m->dirty[v]))
      die(m, v, planned);
  }
}

bool plan_step(machine *m, int32_t place) {
  const braid_chip *chip = m->chip;
  int32_t op = m->schedule->order[place];
  step planned = {.op = op, .over = overwritten(m, op, place)};
  if (planned.over < 0)
    for (int32_t i = chip->makes.begin[op]; i < chip->makes.begin[op + 1]; ++i)
      planned.made += chip->size[chip->makes.item[i]];
  int64_t size = planned.made;
  for (int32_t i = chip->reads.begin[op]; i < chip->reads.begin[op + 1]; ++i)
    if (!value_set_has(&m->resident, chip->reads.item[i]))
      size += chip->size[chip->reads.item[i]];
  while (m->used + size > chip->capacity)
    if (!evict(m, op, place))
      return false;
  m->used += size;
  planned.room = chip->capacity - m->used;
  for (int32_t i = chip->reads.begin[op]; i < chip->reads.begin[op + 1]; ++i) {
    int32_t v = chip->reads.item[i];
    if (!value_set_has(&m->resident, v)) {
      come(m, v, false);
      issue_load(m, v, place);
    }
  }
  leave(m, place, &planned);
  int64_t *end = queue_extend(&m->steps, STEP, &m->out_of_memory);
  if (end)
    memcpy(end, &planned, sizeof planned);
  return true;
}
