/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The work of a chip for the functions of a model: code of kind `stream-plan`, little-endian words
 * of 8 bytes. "BRDNPLAN", version, then the chip: bytes of memory, seconds between two instructions
 * (as all times and rates a double), units (count; kinds as bits, rate, start-up, port or -1),
 * bandwidths of ports (count). Then the functions (count): name, and steps (count), each
 *
 *   0, number of the stream, places of its tensors (count), results (count): kernel, tensors it
 *      takes (count), place; a kernel without a name copies
 *   1, kernel, places of its operands and results (count)
 *   2, place to copy to, place to copy from, bytes
 *
 * Names and places are as in plan_reader.h.
 */
#ifndef BRAID_NPU_PROGRAM_H
#define BRAID_NPU_PROGRAM_H

#include "../internal.h"
#include "../plan_reader.h"
#include "execute.h"

typedef struct npu_result {
  const npu_kernel *kernel; /* NULL for a copy */
  int64_t tensor_count;
  int64_t *tensors;
  plan_place place;
} npu_result;

typedef enum npu_step_kind { NPU_PLAY, NPU_CALL, NPU_COPY } npu_step_kind;

typedef struct npu_step {
  npu_step_kind kind;
  npu_stream stream; /* NPU_PLAY */
  npu_timeline timeline;
  const npu_kernel **kernels; /* of the names of the stream, or the one to call */
  int64_t place_count;
  plan_place *places;
  int64_t result_count;
  npu_result *results;
  int64_t bytes; /* NPU_COPY */
} npu_step;

typedef struct npu_function {
  int64_t step_count;
  npu_step *steps;
} npu_function;

typedef struct npu_program {
  const braid_model_v2 *model;
  const void *weights;
  void *library; /* with the kernels */
  const npu_kernel *kernels;
  int64_t kernel_count;
  npu_chip chip;
  npu_function *functions; /* by the model's numbers; those of other devices have no steps */
} npu_program;

/* NULL and the reason in `error` for code that is missing or malformed: every address is checked
 * here. */
npu_program *npu_load(const braid_device_model *model, char error[BRAID_DEVICE_ERROR]);
void npu_unload(npu_program *program);

#endif /* BRAID_NPU_PROGRAM_H */
