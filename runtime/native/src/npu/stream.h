/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Instruction streams of chips as the compiler writes them (format 5), and when they run.
 */
#ifndef BRAID_NPU_STREAM_H
#define BRAID_NPU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPU_NAME = 64, NPU_ERROR = 200 };

typedef enum npu_kind { NPU_LOAD, NPU_STORE, NPU_MATRIX, NPU_VECTOR, NPU_SYNC } npu_kind;

typedef struct npu_range {
  uint64_t address, size;
} npu_range;

/* The operands of an instruction; `kernel` is a number of the stream's, -1 for a copy. */
typedef struct npu_access {
  int64_t kernel;
  uint64_t step, steps;
  uint64_t read_count, write_count, tensor_count;
  npu_range *reads, *writes;
  uint64_t *tensors;
} npu_access;

typedef struct npu_instruction {
  npu_kind kind;
  uint32_t unit;
  uint64_t amount;
  double seconds; /* negative where they are not declared */
  npu_access access;
} npu_instruction;

/* Bytes on the chip from instruction `first` until all of `last` have ended. */
typedef struct npu_buffer {
  npu_range range;
  uint64_t first, last_count;
  uint64_t *last;
} npu_buffer;

typedef struct npu_stream {
  uint32_t instruction_count, buffer_count, tensor_count, kernel_count;
  npu_instruction *instructions;
  npu_buffer *buffers;
  uint64_t *tensor_bytes;
  char (*kernels)[NPU_NAME];
} npu_stream;

typedef struct npu_unit {
  uint32_t executes; /* a bit for each kind */
  double rate, startup;
  int64_t port; /* -1 for none */
} npu_unit;

typedef struct npu_chip {
  uint64_t memory_bytes;
  double fetch; /* seconds between two instructions */
  uint32_t unit_count, port_count;
  npu_unit *units;
  double *bandwidths;
} npu_chip;

/* The beginning or the end of an instruction. */
typedef struct npu_event {
  uint32_t index;
  bool ends;
} npu_event;

typedef struct npu_timeline {
  int64_t count;
  npu_event *events;
  double seconds;
} npu_timeline;

/* Reads a stream whose addresses are all within the chip's memory, and whose numbers are all of
 * something. False and the reason in `error` otherwise; what was made is then freed. */
bool npu_read_stream(npu_stream *made, const uint8_t *data, int64_t bytes, const npu_chip *chip,
                     char error[NPU_ERROR]);
void npu_free_stream(npu_stream *stream);

/* When the instructions run on `chip`, as the compiler's simulator has it: the same additions in
 * the same order. Returns false, with the reason in `error`, for a stream that cannot run there,
 * deadlocks, or takes too much memory. */
bool npu_simulate(npu_timeline *made, const npu_stream *stream, const npu_chip *chip,
                  char error[NPU_ERROR]);

#endif /* BRAID_NPU_STREAM_H */
