/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Streams on bytes: a chip's computation on the tensors outside of it.
 */
#ifndef BRAID_NPU_EXECUTE_H
#define BRAID_NPU_EXECUTE_H

#include "stream.h"

/* A kernel that was compiled for the host, as the code of kind `stream-kernels` exports it. `call`
 * takes the addresses of its operands, of its results and of scratch memory, each on a multiple of
 * 64; `bytes` has the sizes of operands and results as tensors on their own. Operands of a kernel
 * without a stream may be boxes inside of larger tensors instead. */
typedef struct npu_kernel {
  const char *name;
  void (*call)(void *const *buffers);
  int64_t operand_count, result_count, scratch_bytes;
  const int64_t *bytes;
} npu_kernel;

/* Whether what instructions read and write has the sizes of what they make; `kernels` are those of
 * the names of the stream. */
bool npu_check_kernels(const npu_stream *stream, const npu_kernel *const *kernels,
                       char error[NPU_ERROR]);

/* Runs the stream in the order of its timeline: an instruction reads its operands when it begins
 * and writes its results when it ends; in between these are poisoned, and so is a buffer when its
 * use ends. `tensors` are those outside. False and the reason in `error` where there is no memory.
 */
bool npu_execute(const npu_stream *stream, const npu_timeline *timeline, const npu_chip *chip,
                 const npu_kernel *const *kernels, uint8_t *const *tensors, char error[NPU_ERROR]);

/* Calls a kernel of tensors on their own, which may be anywhere: `buffers` are operands, then
 * results. */
bool npu_call(const npu_kernel *kernel, uint8_t *const *buffers);

#endif /* BRAID_NPU_EXECUTE_H */
