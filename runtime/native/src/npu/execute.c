/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * As `braid/targets/simulator/execute.py`: instructions know nothing but addresses on the chip. If
 * an operand changes while an instruction runs, or another instruction writes to its results, its
 * results are poison. So a stream that reads too early, frees too early or uses one address twice
 * has wrong results.
 */
#define _POSIX_C_SOURCE 200809L
#include "execute.h"

#include "braid/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xFF, ALIGN = 64 };

/* Bytes somewhere. */
typedef struct part {
  uint8_t *at;
  uint64_t size;
  bool own; /* of a source: the instruction writes there itself */
} part;

/* The data that an instruction in progress has read. */
typedef struct underway {
  uint8_t *bytes; /* the sources in turn; NULL while it is not under way */
} underway;

typedef struct executor {
  const npu_stream *stream;
  const npu_kernel *const *kernels;
  uint8_t *const *tensors;
  uint8_t *memory;
  underway *underway;
  uint64_t *left; /* by buffer: instructions that have not ended */
  part *sources, *results;
} executor;

static bool overlaps(npu_range a, npu_range b) {
  return a.address < b.address + b.size && b.address < a.address + a.size;
}

static bool is_written(const npu_access *access, npu_range range) {
  for (uint64_t i = 0; i < access->write_count; ++i)
    if (overlaps(range, access->writes[i]))
      return true;
  return false;
}

/* Steps behind the first of an op read what is there of the results. */
static uint64_t sources_of(const executor *own, const npu_instruction *instruction, part *found) {
  const npu_access *access = &instruction->access;
  uint64_t count = 0;
  if (instruction->kind == NPU_LOAD && access->tensor_count > 0) {
    for (; count < access->tensor_count; ++count) {
      uint64_t number = access->tensors[count];
      found[count] = (part){own->tensors[number], own->stream->tensor_bytes[number], false};
    }
    return count;
  }
  for (uint64_t i = 0; i < access->read_count; ++i) {
    npu_range range = access->reads[i];
    bool is_own = access->tensor_count == 0 && is_written(access, range);
    if (access->step == 1 || !is_own)
      found[count++] = (part){own->memory + range.address, range.size, is_own};
  }
  for (uint64_t i = 0; access->step > 1 && i < access->write_count; ++i)
    found[count++] = (part){own->memory + access->writes[i].address, access->writes[i].size, true};
  return count;
}

static uint64_t results_of(const executor *own, const npu_instruction *instruction, part *found) {
  const npu_access *access = &instruction->access;
  bool stores = instruction->kind == NPU_STORE && access->tensor_count > 0;
  uint64_t count = stores ? access->tensor_count : access->write_count;
  for (uint64_t i = 0; i < count; ++i)
    found[i] = stores
                   ? (part){own->tensors[access->tensors[i]],
                            own->stream->tensor_bytes[access->tensors[i]], false}
                   : (part){own->memory + access->writes[i].address, access->writes[i].size, false};
  return count;
}

static bool begin(executor *own, uint32_t index) {
  const npu_instruction *instruction = &own->stream->instructions[index];
  uint64_t sources = sources_of(own, instruction, own->sources), bytes = 0;
  for (uint64_t i = 0; i < sources; ++i)
    bytes += own->sources[i].size;
  uint8_t *copy = own->underway[index].bytes = malloc(bytes + 1);
  if (copy == NULL)
    return false;
  for (uint64_t i = 0; i < sources; copy += own->sources[i++].size)
    memcpy(copy, own->sources[i].at, own->sources[i].size);
  uint64_t results = results_of(own, instruction, own->results);
  for (uint64_t i = 0; i < results; ++i)
    memset(own->results[i].at, POISON, own->results[i].size);
  return true;
}

/* Results as a step leaves them that is not the last, and the other way round: they are of use
 * only to the next step of the same op, on the same operands. */
static void hide(part data, uint64_t step, const part *sources, uint64_t count,
                 const uint8_t *read) {
  uint64_t key = step;
  for (uint64_t i = 0; i < count; read += sources[i++].size)
    if (!sources[i].own) {
      uint64_t both[2] = {key, braid_digest(read, sources[i].size)};
      key = braid_digest(both, sizeof both);
    }
  for (uint64_t i = 0; i < data.size; ++i)
    data.at[i] ^= (uint8_t)(key >> (8 * (i % 8)));
}

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

bool npu_call(const npu_kernel *kernel, uint8_t *const *buffers) {
  int64_t count = kernel->operand_count + kernel->result_count;
  uint64_t total = aligned((uint64_t)kernel->scratch_bytes);
  for (int64_t i = 0; i < count; ++i)
    total += aligned((uint64_t)kernel->bytes[i]);
  void *memory = NULL;
  void **arguments = calloc((size_t)count + 2, sizeof *arguments);
  bool there = arguments != NULL && posix_memalign(&memory, ALIGN, total + ALIGN) == 0;
  if (there) {
    uint8_t *at = memory;
    for (int64_t i = 0; i < count; at += aligned((uint64_t)kernel->bytes[i++])) {
      arguments[i] = at;
      if (i < kernel->operand_count)
        memcpy(at, buffers[i], (size_t)kernel->bytes[i]);
    }
    arguments[count] = at;
    kernel->call(arguments);
    for (int64_t i = kernel->operand_count; i < count; ++i)
      memcpy(buffers[i], arguments[i], (size_t)kernel->bytes[i]);
  }
  free(memory);
  free(arguments);
  return there;
}

/* Computes the results of an instruction into these places. */
static bool make(executor *own, const npu_instruction *instruction, uint64_t sources,
                 uint64_t results, uint8_t *read) {
  const npu_access *access = &instruction->access;
  if (access->kernel < 0 || access->step > 1) {
    /* A copy, or what the step before has left: it was read last. */
    uint8_t *from = read;
    for (uint64_t i = 0; i + results < sources && access->step > 1; ++i)
      from += own->sources[i].size;
    for (uint64_t i = 0; i < results; from += own->results[i++].size)
      memcpy(own->results[i].at, from, own->results[i].size);
    for (uint64_t i = 0; i < results && access->kernel >= 0; ++i)
      hide(own->results[i], access->step - 1, own->sources, sources, read);
  } else {
    uint8_t **buffers = calloc(sources + results + 1, sizeof *buffers);
    if (buffers == NULL)
      return false;
    uint8_t *from = read;
    for (uint64_t i = 0; i < sources; from += own->sources[i++].size)
      buffers[i] = from;
    for (uint64_t i = 0; i < results; ++i)
      buffers[sources + i] = own->results[i].at;
    bool called = npu_call(own->kernels[access->kernel], buffers);
    free(buffers);
    if (!called)
      return false;
  }
  for (uint64_t i = 0; i < results && access->step < access->steps; ++i)
    hide(own->results[i], access->step, own->sources, sources, read);
  return true;
}

static bool is_poison(part where) {
  for (uint64_t i = 0; i < where.size; ++i)
    if (where.at[i] != POISON)
      return false;
  return true;
}

static void release(executor *own, uint32_t index) {
  for (uint32_t b = 0; b < own->stream->buffer_count; ++b) {
    const npu_buffer *buffer = &own->stream->buffers[b];
    bool uses = buffer->first == index;
    for (uint64_t i = 0; i < buffer->last_count; ++i)
      uses |= buffer->last[i] == index;
    if (uses && --own->left[b] == 0)
      memset(own->memory + buffer->range.address, POISON, buffer->range.size);
  }
}

static bool end(executor *own, uint32_t index) {
  const npu_instruction *instruction = &own->stream->instructions[index];
  uint64_t sources = sources_of(own, instruction, own->sources);
  uint64_t results = results_of(own, instruction, own->results);
  uint8_t *read = own->underway[index].bytes;
  bool whole = true;
  const uint8_t *before = read;
  for (uint64_t i = 0; i < sources; before += own->sources[i++].size)
    whole &= own->sources[i].own || memcmp(own->sources[i].at, before, own->sources[i].size) == 0;
  for (uint64_t i = 0; i < results; ++i)
    whole &= is_poison(own->results[i]);
  bool made = true;
  if (whole)
    made = make(own, instruction, sources, results, read);
  else
    for (uint64_t i = 0; i < results; ++i)
      memset(own->results[i].at, POISON, own->results[i].size);
  free(read);
  own->underway[index].bytes = NULL;
  release(own, index);
  return made;
}

static uint64_t users(const npu_buffer *buffer) {
  uint64_t count = 1;
  for (uint64_t i = 0; i < buffer->last_count; ++i) {
    bool again = buffer->last[i] == buffer->first;
    for (uint64_t k = 0; k < i; ++k)
      again |= buffer->last[k] == buffer->last[i];
    count += !again;
  }
  return count;
}

/* The most that an instruction reads, or writes. */
static uint64_t most_parts(const npu_stream *stream) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < stream->instruction_count; ++i) {
    const npu_access *access = &stream->instructions[i].access;
    uint64_t parts = access->read_count + access->write_count + access->tensor_count;
    most = parts > most ? parts : most;
  }
  return most;
}

bool npu_execute(const npu_stream *stream, const npu_timeline *timeline, const npu_chip *chip,
                 const npu_kernel *const *kernels, uint8_t *const *tensors, char error[NPU_ERROR]) {
  executor own = {.stream = stream, .kernels = kernels, .tensors = tensors};
  uint64_t most = most_parts(stream);
  own.memory = malloc(chip->memory_bytes + 1);
  own.underway = calloc((size_t)stream->instruction_count + 1, sizeof *own.underway);
  own.left = calloc((size_t)stream->buffer_count + 1, sizeof *own.left);
  own.sources = calloc(most + 1, sizeof *own.sources);
  own.results = calloc(most + 1, sizeof *own.results);
  bool ran = own.memory && own.underway && own.left && own.sources && own.results;
  if (ran) {
    memset(own.memory, POISON, chip->memory_bytes);
    for (uint32_t b = 0; b < stream->buffer_count; ++b)
      own.left[b] = users(&stream->buffers[b]);
  }
  for (int64_t i = 0; i < timeline->count && ran; ++i) {
    npu_event event = timeline->events[i];
    ran = event.ends ? end(&own, event.index) : begin(&own, event.index);
  }
  if (!ran)
    snprintf(error, NPU_ERROR, "out of memory");
  for (uint32_t i = 0; own.underway != NULL && i < stream->instruction_count; ++i)
    free(own.underway[i].bytes);
  free(own.memory);
  free(own.underway);
  free(own.left);
  free(own.sources);
  free(own.results);
  return ran;
}

static bool fits(const npu_instruction *instruction, const npu_kernel *kernel, const part *sources,
                 uint64_t source_count, const part *results, uint64_t result_count) {
  if (kernel == NULL || instruction->access.step > 1) {
    /* Values that are handed on are read last, and copied. */
    uint64_t first = instruction->access.step > 1 ? source_count - result_count : 0;
    bool all = source_count >= result_count;
    for (uint64_t i = 0; all && i < result_count; ++i)
      all = results[i].size == sources[first + i].size;
    return all;
  }
  bool all = (int64_t)source_count == kernel->operand_count &&
             (int64_t)result_count == kernel->result_count;
  for (uint64_t i = 0; all && i < source_count + result_count; ++i)
    all = (uint64_t)kernel->bytes[i] ==
          (i < source_count ? sources[i] : results[i - source_count]).size;
  return all;
}

bool npu_check_kernels(const npu_stream *stream, const npu_kernel *const *kernels,
                       char error[NPU_ERROR]) {
  uint8_t nothing, **tensors = calloc((size_t)stream->tensor_count + 1, sizeof *tensors);
  part *parts = calloc(2 * most_parts(stream) + 2, sizeof *parts);
  bool there = tensors != NULL && parts != NULL, all = there;
  executor own = {.stream = stream, .tensors = tensors, .memory = &nothing};
  for (uint32_t i = 0; i < stream->instruction_count && all; ++i) {
    const npu_instruction *instruction = &stream->instructions[i];
    if (instruction->kind == NPU_SYNC)
      continue;
    part *results = parts + most_parts(stream) + 1;
    uint64_t sources = sources_of(&own, instruction, parts);
    uint64_t made = results_of(&own, instruction, results);
    int64_t kernel = instruction->access.kernel;
    all = fits(instruction, kernel < 0 ? NULL : kernels[kernel], parts, sources, results, made);
    if (!all)
      snprintf(error, NPU_ERROR, "instruction %u reads or writes other sizes than it makes", i);
  }
  if (!there)
    snprintf(error, NPU_ERROR, "out of memory");
  free(tensors);
  free(parts);
  return all;
}
