/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The simulator of `braid/targets/simulator/simulate.py`, step by step: units execute their
 * instructions in order, transfers through one port share its bandwidth evenly, and a sync holds a
 * unit until another instruction has ended.
 */
#include "stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct active {
  uint32_t index, unit;
  double startup, amount, rate, left;
} active;

typedef struct machine {
  const npu_stream *stream;
  const npu_chip *chip;
  double now;
  bool *ended;
  double *starts, *ends;         /* by instruction */
  uint32_t *queue, *head, *tail; /* the instructions of all units, and where those of each are */
  active *active;                /* in the order in which they began */
  uint32_t active_count;
  npu_timeline *made;
} machine;

static bool check(const npu_stream *stream, const npu_chip *chip, char error[NPU_ERROR]) {
  static const char *const names[] = {"load", "store", "matrix", "vector", "sync"};
  for (uint32_t i = 0; i < stream->instruction_count; ++i) {
    const npu_instruction *own = &stream->instructions[i];
    if (own->unit >= chip->unit_count) {
      snprintf(error, NPU_ERROR, "instruction %u is for unit %u, but the chip has %u", i, own->unit,
               chip->unit_count);
      return false;
    }
    if (own->kind != NPU_SYNC && (chip->units[own->unit].executes >> own->kind & 1) == 0) {
      snprintf(error, NPU_ERROR, "instruction %u is a %s, which unit %u does not execute", i,
               names[own->kind], own->unit);
      return false;
    }
  }
  return true;
}

static bool is_active(const machine *own, uint32_t unit) {
  for (uint32_t i = 0; i < own->active_count; ++i)
    if (own->active[i].unit == unit)
      return true;
  return false;
}

static double arrival(const machine *own, uint32_t index) {
  return (double)((int64_t)index + 1) * own->chip->fetch;
}

static void note(machine *own, uint32_t index, bool ends) {
  own->made->events[own->made->count++] = (npu_event){index, ends};
}

/* Starts what the unit can; whether a sync has ended. */
static bool issue_to(machine *own, uint32_t unit) {
  bool synced = false;
  while (own->head[unit] < own->tail[unit] && !is_active(own, unit)) {
    uint32_t index = own->queue[own->head[unit]];
    const npu_instruction *next = &own->stream->instructions[index];
    if (arrival(own, index) > own->now)
      break;
    if (next->kind != NPU_SYNC) {
      double startup = own->chip->units[unit].startup, amount = (double)next->amount;
      if (next->seconds >= 0)
        startup = next->seconds, amount = 0;
      own->active[own->active_count++] = (active){index, unit, startup, amount, 0, 0};
      own->starts[index] = own->now;
      note(own, index, false);
    } else if (next->amount < own->stream->instruction_count && own->ended[next->amount]) {
      own->ended[index] = synced = true;
    } else {
      break;
    }
    ++own->head[unit];
  }
  return synced;
}

/* Starts instructions that can start; returns whether any work is left. */
static bool issue(machine *own) {
  bool synced = true, left = false;
  while (synced) {
    synced = false;
    for (uint32_t unit = 0; unit < own->chip->unit_count; ++unit)
      synced |= issue_to(own, unit);
  }
  for (uint32_t unit = 0; unit < own->chip->unit_count; ++unit)
    left |= own->head[unit] < own->tail[unit];
  return left || own->active_count > 0;
}

static void set_rates(machine *own) {
  const npu_chip *chip = own->chip;
  for (uint32_t i = 0; i < own->active_count; ++i) {
    active *task = &own->active[i];
    const npu_unit *unit = &chip->units[task->unit];
    uint32_t through = 0;
    for (uint32_t k = 0; k < own->active_count; ++k)
      through += own->active[k].startup <= 0 && chip->units[own->active[k].unit].port == unit->port;
    double rate = unit->rate;
    if (unit->port >= 0 && through > 0) {
      double share = chip->bandwidths[unit->port] / through;
      rate = share < rate ? share : rate;
    }
    task->rate = rate;
    task->left = task->startup > 0 ? task->startup : task->amount / rate;
  }
}

/* Advances to the next time at which an instruction arrives, starts up or ends; returns false if
 * there is none. */
static bool advance(machine *own) {
  set_rates(own);
  double next = INFINITY;
  for (uint32_t unit = 0; unit < own->chip->unit_count; ++unit)
    if (own->head[unit] < own->tail[unit]) {
      double time = arrival(own, own->queue[own->head[unit]]);
      next = time > own->now && time < next ? time : next;
    }
  double step = next - own->now;
  for (uint32_t i = 0; i < own->active_count; ++i)
    step = own->active[i].left < step ? own->active[i].left : step;
  if (step == INFINITY)
    return false;
  own->now = step == next - own->now ? next : own->now + step;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < own->active_count; ++i) {
    active task = own->active[i];
    bool done = task.left <= step;
    if (task.startup > 0) {
      task.startup = done ? 0 : task.startup - step;
      done = task.startup == 0 && task.amount == 0;
    } else {
      task.amount -= step * task.rate;
    }
    if (done) {
      own->ends[task.index] = own->now;
      own->ended[task.index] = true;
      note(own, task.index, true);
    } else {
      own->active[kept++] = task;
    }
  }
  own->active_count = kept;
  return true;
}

typedef struct change {
  double time, bytes;
} change;

static int compare(const void *left, const void *right) {
  const change *a = left, *b = right;
  if (a->time != b->time)
    return a->time < b->time ? -1 : 1;
  return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* The most bytes that buffers take at one time; negative without memory to compute it. */
static double peak_bytes(const machine *own) {
  const npu_stream *stream = own->stream;
  change *changes = calloc(2 * (size_t)stream->buffer_count + 1, sizeof *changes);
  if (changes == NULL)
    return -1;
  for (uint32_t i = 0; i < stream->buffer_count; ++i) {
    const npu_buffer *buffer = &stream->buffers[i];
    double end = own->ends[buffer->first];
    for (uint64_t k = 0; k < buffer->last_count; ++k)
      end = own->ends[buffer->last[k]] > end ? own->ends[buffer->last[k]] : end;
    changes[2 * i] = (change){own->starts[buffer->first], (double)buffer->range.size};
    changes[2 * i + 1] = (change){end, -(double)buffer->range.size};
  }
  qsort(changes, 2 * (size_t)stream->buffer_count, sizeof *changes, compare);
  double now = 0, peak = 0;
  for (uint64_t i = 0; i < 2 * (uint64_t)stream->buffer_count; ++i) {
    now += changes[i].bytes;
    peak = now > peak ? now : peak;
  }
  free(changes);
  return peak;
}

static bool run(machine *own, char error[NPU_ERROR]) {
  while (issue(own))
    if (!advance(own)) {
      snprintf(error, NPU_ERROR,
               "the stream stands still: a sync may only wait for an instruction that is issued "
               "before it");
      return false;
    }
  double peak = peak_bytes(own);
  if (peak < 0)
    snprintf(error, NPU_ERROR, "out of memory");
  else if (peak > (double)own->chip->memory_bytes)
    snprintf(error, NPU_ERROR,
             "the buffers of the stream take %.0f bytes at one time, but the chip has %llu", peak,
             (unsigned long long)own->chip->memory_bytes);
  else
    return true;
  return false;
}

bool npu_simulate(npu_timeline *made, const npu_stream *stream, const npu_chip *chip,
                  char error[NPU_ERROR]) {
  memset(made, 0, sizeof *made);
  if (!check(stream, chip, error))
    return false;
  size_t count = (size_t)stream->instruction_count + 1, units = (size_t)chip->unit_count + 1;
  machine own = {.stream = stream, .chip = chip, .made = made};
  own.ended = calloc(count, sizeof *own.ended);
  own.starts = calloc(2 * count, sizeof *own.starts);
  own.queue = calloc(count + 2 * units, sizeof *own.queue);
  own.active = calloc(units, sizeof *own.active);
  made->events = calloc(2 * count, sizeof *made->events);
  bool ran = false;
  if (own.ended && own.starts && own.queue && own.active && made->events) {
    own.ends = own.starts + count;
    own.head = own.queue + count;
    own.tail = own.head + units;
    uint32_t at = 0;
    for (uint32_t unit = 0; unit < chip->unit_count; ++unit) {
      own.head[unit] = at;
      for (uint32_t i = 0; i < stream->instruction_count; ++i)
        if (stream->instructions[i].unit == unit)
          own.queue[at++] = i;
      own.tail[unit] = at;
    }
    ran = run(&own, error);
    for (uint32_t i = 0; i < stream->instruction_count; ++i)
      made->seconds = own.ends[i] > made->seconds ? own.ends[i] : made->seconds;
  } else {
    snprintf(error, NPU_ERROR, "out of memory");
  }
  free(own.ended);
  free(own.starts);
  free(own.queue);
  free(own.active);
  if (!ran) {
    free(made->events);
    made->events = NULL;
  }
  return ran;
}
