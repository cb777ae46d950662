/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "machine.h"
#include "plan.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

static bool allocate(void *field, int32_t count, size_t size) {
  void **pointer = field;
  *pointer = calloc(count ? (size_t)count : 1, size);
  return *pointer;
}

bool machine_open(machine *m, const braid_chip *chip, const schedule *order, int32_t ahead) {
  *m = (machine){.chip = chip, .schedule = order, .ahead = ahead};
  int32_t values = chip->values;
  if (!allocate(&m->present, values, sizeof(int32_t)))
    return false;
  for (int32_t v = 0; v < values; ++v)
    if (chip->present[v])
      m->present[m->present_count++] = v;
  return value_set_open(&m->resident, values) && value_set_open(&m->there, values) &&
         allocate(&m->dirty, values, 1) && allocate(&m->mark, values, 1) &&
         allocate(&m->next_use, values, sizeof(int32_t)) &&
         allocate(&m->touched, values, sizeof(int32_t)) &&
         allocate(&m->outside, values, sizeof(int32_t)) &&
         allocate(&m->since, values, sizeof(int64_t)) &&
         allocate(&m->until, values, sizeof(int64_t)) &&
         allocate(&m->stored, values, sizeof(int64_t)) &&
         allocate(&m->ends, chip->ops, sizeof(int64_t)) &&
         allocate(&m->free, unit_count(chip), sizeof(int64_t));
}

void machine_close(machine *m) {
  value_set_close(&m->resident);
  value_set_close(&m->there);
  queue *queues[] = {&m->steps, &m->loads, &m->evicted, &m->dead, &m->released, &m->undo};
  for (size_t i = 0; i < sizeof queues / sizeof *queues; ++i)
    free(queues[i]->item);
  void *arrays[] = {m->dirty,  m->touched, m->next_use, m->outside, m->since,  m->until,
                    m->stored, m->ends,    m->free,     m->mark,    m->present};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i)
    free(arrays[i]);
}

/* By insertion: from one order to the next few values change their places. */
static void sort_by_use(int32_t *values, int32_t count, const int32_t *use) {
  for (int32_t i = 1; i < count; ++i) {
    int32_t v = values[i], j = i;
    for (; j > 0 &&
           (use[values[j - 1]] > use[v] || (use[values[j - 1]] == use[v] && values[j - 1] > v));
         --j)
      values[j] = values[j - 1];
    values[j] = v;
  }
}

static void find_there(machine *m, int32_t v) {
  if (m->used + m->chip->size[v] > m->chip->capacity)
    return;
  m->used += m->chip->size[v];
  m->dirty[v] = false;
  m->touched[v] = -1;
  m->since[v] = m->until[v] = 0;
  value_set_add(&m->resident, v);
  value_set_add(&m->there, v);
}

void machine_enter(machine *m) {
  const braid_chip *chip = m->chip;
  value_set_clear(&m->resident);
  value_set_clear(&m->there);
  queue *queues[] = {&m->steps, &m->loads, &m->evicted, &m->dead, &m->released, &m->undo};
  for (size_t i = 0; i < sizeof queues / sizeof *queues; ++i)
    queue_clear(queues[i]);
  memset(m->free, 0, (size_t)unit_count(chip) * sizeof *m->free);
  memset(m->stored, 0, (size_t)chip->values * sizeof *m->stored);
  memset(m->outside, 0, (size_t)chip->values * sizeof *m->outside);
  m->used = m->space = 0;
  m->last = 0;
  for (int32_t i = 0; i < m->present_count; ++i)
    m->next_use[m->present[i]] = use_from(m, m->present[i], 0);
  sort_by_use(m->present, m->present_count, m->next_use);
  for (int32_t i = 0; i < m->present_count; ++i)
    find_there(m, m->present[i]);
  m->credit = chip->capacity - m->used;
}

bool machine_step(machine *m, int32_t place) {
  if (!plan_step(m, place) || m->out_of_memory)
    return false;
  if (machine_pending(m) > m->ahead)
    run_step(m, place - m->ahead);
  return true;
}

void machine_finish(machine *m) {
  while (!queue_is_empty(&m->steps))
    run_step(m, m->chip->ops - machine_pending(m));
}
