/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "copies.h"
#include "plan.h"

#include <string.h>

static queue *saved_queue(machine *m, int32_t i) {
  queue *queues[] = {&m->steps, &m->loads, &m->evicted, &m->dead, &m->released};
  return queues[i];
}

enum { QUEUES = 5, HEADER = 6, RESIDENT = 3, THERE = 3 };

static int64_t *write_all(int64_t *word, const int64_t *numbers, int32_t count) {
  memcpy(word, numbers, (size_t)count * sizeof *word);
  return word + count;
}

void machine_save(machine *m, record *copy) {
  int32_t units = unit_count(m->chip);
  int32_t count = HEADER + units + RESIDENT * m->resident.count + THERE * m->there.count;
  for (int32_t i = 0; i < QUEUES; ++i)
    count += 1 + queue_count(saved_queue(m, i));
  queue_clear(copy);
  int64_t *word = queue_extend(copy, count, &m->out_of_memory);
  if (!word)
    return;
  const int64_t header[HEADER] = {m->used,  m->last,           m->credit,
                                  m->space, m->resident.count, m->there.count};
  word = write_all(word, header, HEADER);
  word = write_all(word, m->free, units);
  for (int32_t i = 0; i < m->resident.count; ++i) {
    int32_t v = m->resident.value[i];
    word = write_all(word, (int64_t[RESIDENT]){v, m->dirty[v], m->touched[v]}, RESIDENT);
  }
  for (int32_t i = 0; i < m->there.count; ++i) {
    int32_t v = m->there.value[i];
    word = write_all(word, (int64_t[THERE]){v, m->since[v], m->until[v]}, THERE);
  }
  for (int32_t i = 0; i < QUEUES; ++i) {
    const queue *q = saved_queue(m, i);
    *word++ = queue_count(q);
    if (!queue_is_empty(q))
      word = write_all(word, q->item + q->head, queue_count(q));
  }
}

/* Values that planned steps have stored outside of the chip; those stored earlier are older than
 * any position at which a load can still be issued. */
static void restore_outside(machine *m, int32_t place) {
  const braid_chip *chip = m->chip;
  memset(m->outside, 0, (size_t)chip->values * sizeof *m->outside);
  int32_t begin = place - machine_pending(m);
  const step *steps = machine_steps(m);
  for (int32_t i = 0; i < place - begin; ++i) {
    int64_t op = steps[i].op;
    for (int32_t j = chip->makes.begin[op]; j < chip->makes.begin[op + 1]; ++j)
      if (chip->output[chip->makes.item[j]])
        m->outside[chip->makes.item[j]] = begin + i + 1;
  }
  /* A value made there may be evicted there. */
  for (int32_t i = m->evicted.head; i < m->evicted.tail; i += EVICTION)
    m->outside[m->evicted.item[i + 1]] = (int32_t)m->evicted.item[i];
}

void machine_restore(machine *m, const record *copy, int32_t place) {
  const int64_t *word = copy->item;
  value_set_clear(&m->resident);
  value_set_clear(&m->there);
  m->used = word[0];
  m->last = (int32_t)word[1];
  m->credit = word[2];
  m->space = word[3];
  int64_t residents = word[4], there = word[5];
  word += HEADER;
  for (int32_t i = 0; i < unit_count(m->chip); ++i)
    m->free[i] = *word++;
  for (; residents; --residents, word += RESIDENT) {
    value_set_add(&m->resident, (int32_t)word[0]);
    m->dirty[word[0]] = word[1] != 0;
    m->touched[word[0]] = (int32_t)word[2];
    m->next_use[word[0]] = use_from(m, (int32_t)word[0], place);
  }
  for (; there; --there, word += THERE) {
    value_set_add(&m->there, (int32_t)word[0]);
    m->since[word[0]] = word[1];
    m->until[word[0]] = word[2];
  }
  for (int32_t i = 0; i < QUEUES; ++i) {
    queue *q = saved_queue(m, i);
    int32_t count = (int32_t)*word++;
    queue_clear(q);
    int64_t *numbers = count ? queue_extend(q, count, &m->out_of_memory) : NULL;
    if (numbers)
      write_all(numbers, word, count);
    word += count;
  }
  restore_outside(m, place);
}

bool machine_has_residents_of(const machine *m, const record *copy) {
  if (copy->item[4] != m->resident.count)
    return false;
  const int64_t *word = copy->item + HEADER + unit_count(m->chip);
  for (int32_t i = 0; i < m->resident.count; ++i)
    if (!value_set_has(&m->resident, (int32_t)word[RESIDENT * i]))
      return false;
  return true;
}

const int64_t *record_free(const record *copy) { return copy->item + HEADER; }
