/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 5, HEADER = 32, RECORD = 24, DIGEST = 32, WORD = 8 };

typedef struct reader {
  const uint8_t *at, *end;
  char *error;
  bool failed;
} reader;

static void fail(reader *in, const char *format, ...) {
  if (in->failed)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(in->error, NPU_ERROR, format, arguments);
  va_end(arguments);
  in->failed = true;
}

static uint64_t little(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static uint64_t word(reader *in) {
  if (in->failed || in->end - in->at < WORD) {
    fail(in, "the stream ends before its last number");
    return 0;
  }
  in->at += WORD;
  return little(in->at - WORD, WORD);
}

/* A count of items that each take at least one word. */
static uint64_t count(reader *in) {
  uint64_t value = word(in);
  if (in->failed || value <= (uint64_t)(in->end - in->at) / WORD)
    return value;
  fail(in, "the stream ends before its last number");
  return 0;
}

static void *array(reader *in, uint64_t length, size_t each) {
  void *made = in->failed ? NULL : calloc(length + 1, each);
  if (made == NULL)
    fail(in, "out of memory");
  return made;
}

static uint64_t *list(reader *in, uint64_t *length) {
  *length = count(in);
  uint64_t *made = array(in, *length, sizeof *made);
  for (uint64_t i = 0; !in->failed && i < *length; ++i)
    made[i] = word(in);
  if (in->failed)
    *length = 0;
  return made;
}

static npu_range range(reader *in, uint64_t address, uint64_t size, const npu_chip *chip) {
  if (size > chip->memory_bytes || address > chip->memory_bytes - size)
    fail(in, "the stream uses bytes %llu to %llu of the chip's %llu", (unsigned long long)address,
         (unsigned long long)(address + size), (unsigned long long)chip->memory_bytes);
  return (npu_range){address, size};
}

static npu_range *ranges(reader *in, uint64_t *length, const npu_chip *chip) {
  *length = count(in);
  npu_range *made = array(in, *length, sizeof *made);
  for (uint64_t i = 0; !in->failed && i < *length; ++i) {
    uint64_t address = word(in), size = word(in);
    made[i] = range(in, address, size, chip);
  }
  if (in->failed)
    *length = 0;
  return made;
}

static void buffer(reader *in, npu_buffer *made, const npu_stream *of, const npu_chip *chip) {
  uint64_t size = word(in), address = word(in);
  if (address == 0)
    fail(in, "a buffer of the stream has no address: it can be simulated, but not run");
  made->range = range(in, address - 1, size, chip);
  made->first = word(in);
  made->last = list(in, &made->last_count);
  for (uint64_t i = 0; !in->failed && i <= made->last_count; ++i) {
    uint64_t place = i < made->last_count ? made->last[i] : made->first;
    if (place >= of->instruction_count || of->instructions[place].kind == NPU_SYNC)
      fail(in, "a buffer of the stream names instruction %llu, which uses none",
           (unsigned long long)place);
  }
}

static void access_of(reader *in, npu_instruction *own, uint32_t place, const npu_stream *of,
                      const npu_chip *chip) {
  npu_access *made = &own->access;
  uint64_t there = word(in);
  if (there == 0 && own->kind != NPU_SYNC)
    fail(in, "instruction %u does not say what it reads and writes", place);
  if (there == 0 || in->failed)
    return;
  uint64_t kernel = word(in);
  made->step = word(in);
  made->steps = word(in);
  made->reads = ranges(in, &made->read_count, chip);
  made->writes = ranges(in, &made->write_count, chip);
  made->tensors = list(in, &made->tensor_count);
  made->kernel = (int64_t)kernel - 1;
  if (kernel > of->kernel_count)
    fail(in, "instruction %u names a kernel that is not there", place);
  if (made->step < 1 || made->step > made->steps)
    fail(in, "instruction %u is step %llu of %llu", place, (unsigned long long)made->step,
         (unsigned long long)made->steps);
  for (uint64_t i = 0; i < made->tensor_count; ++i)
    if (made->tensors[i] >= of->tensor_count)
      fail(in, "instruction %u names tensor %llu of %u outside", place,
           (unsigned long long)made->tensors[i], of->tensor_count);
}

/* The names before the empty one, each in a line. */
static void kernels(reader *in, npu_stream *made, const char *text, uint64_t bytes) {
  made->kernels = array(in, bytes, sizeof *made->kernels);
  const char *end = text + bytes;
  while (!in->failed && text < end && *text != '\n') {
    const char *line = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((line != NULL ? line : end) - text);
    if (length >= NPU_NAME) {
      fail(in, "the name of a kernel of the stream is too long");
      return;
    }
    memcpy(made->kernels[made->kernel_count++], text, length);
    text += length + (line != NULL);
  }
}

static void records(reader *in, npu_stream *made, const uint8_t *at) {
  for (uint32_t i = 0; i < made->instruction_count && !in->failed; ++i, at += RECORD) {
    npu_instruction *own = &made->instructions[i];
    own->kind = at[0];
    own->unit = at[1];
    own->amount = little(at + 8, 8);
    memcpy(&own->seconds, at + 16, 8);
    if (at[0] > NPU_SYNC)
      fail(in, "instruction %u has the unknown kind %d", i, at[0]);
    if (!(own->seconds < 1e9))
      fail(in, "instruction %u takes no time that can be", i);
  }
}

bool npu_read_stream(npu_stream *made, const uint8_t *data, int64_t bytes, const npu_chip *chip,
                     char error[NPU_ERROR]) {
  memset(made, 0, sizeof *made);
  reader in = {data, data, error, false};
  if (bytes < HEADER + DIGEST || memcmp(data, "BRDI", 4) != 0) {
    fail(&in, "this is not an instruction stream");
    return false;
  }
  if (little(data + 4, 2) != VERSION) {
    fail(&in, "the stream has version %d, expected %d", (int)little(data + 4, 2), VERSION);
    return false;
  }
  uint64_t target = little(data + 6, 2), instructions = little(data + 8, 4);
  uint64_t op_bytes = little(data + 12, 4), words = little(data + 16, 4);
  uint64_t buffers = little(data + 20, 4), tensors = little(data + 24, 4);
  uint64_t names = little(data + 28, 4);
  uint64_t total = HEADER + instructions * RECORD + op_bytes + words * WORD + names + target;
  if (total + DIGEST != (uint64_t)bytes || buffers > words || tensors > words) {
    fail(&in, "the stream has %lld bytes, expected %llu", (long long)bytes,
         (unsigned long long)(total + DIGEST));
    return false;
  }
  made->instruction_count = (uint32_t)instructions;
  made->tensor_count = (uint32_t)tensors;
  made->instructions = array(&in, instructions, sizeof *made->instructions);
  made->buffers = array(&in, buffers, sizeof *made->buffers);
  made->tensor_bytes = array(&in, tensors, sizeof *made->tensor_bytes);
  const uint8_t *at_words = data + HEADER + instructions * RECORD + op_bytes;
  kernels(&in, made, (const char *)at_words + words * WORD, names);
  if (!in.failed)
    records(&in, made, data + HEADER);
  in.at = at_words;
  in.end = at_words + words * WORD;
  for (uint64_t i = 0; i < buffers && !in.failed; ++i) {
    buffer(&in, &made->buffers[i], made, chip);
    made->buffer_count = (uint32_t)(i + 1);
  }
  for (uint32_t i = 0; i < instructions && !in.failed; ++i)
    access_of(&in, &made->instructions[i], i, made, chip);
  for (uint64_t i = 0; i < tensors && !in.failed; ++i)
    made->tensor_bytes[i] = word(&in);
  if (in.failed)
    npu_free_stream(made);
  return !in.failed;
}

void npu_free_stream(npu_stream *stream) {
  for (uint32_t i = 0; stream->instructions != NULL && i < stream->instruction_count; ++i) {
    free(stream->instructions[i].access.reads);
    free(stream->instructions[i].access.writes);
    free(stream->instructions[i].access.tensors);
  }
  for (uint32_t i = 0; stream->buffers != NULL && i < stream->buffer_count; ++i)
    free(stream->buffers[i].last);
  free(stream->instructions);
  free(stream->buffers);
  free(stream->tensor_bytes);
  free(stream->kernels);
  memset(stream, 0, sizeof *stream);
}
