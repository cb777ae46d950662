/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A model's functions on a GPU: their modules, and each as a graph that is launched as a whole.
 */
#ifndef BRAID_CUDA_PROGRAM_H
#define BRAID_CUDA_PROGRAM_H

#include "driver.h"
#include "plan.h"

/* A GPU that is open. All calls below are made while its context is current. */
typedef struct cuda_gpu {
  const cuda_driver *driver;
  int ordinal, device;
  int major, minor; /* its compute capability */
  cuda_context context;
} cuda_gpu;

/* The memory of a function's run: addresses on the device. */
typedef struct cuda_buffers {
  cuda_address arena, weights;
  const cuda_address *inputs, *outputs;
} cuda_buffers;

typedef struct cuda_program cuda_program;

/* ---- Code (modules.c) ---- */

/* The code of a device that fits the GPU best; `best` does not change if there is none at all.
 * False, and why in `error`, where none fits. */
bool braid_cuda_best_code(const cuda_gpu *gpu, const braid_device_v1 *device,
                          const braid_code_v1 **best, char *error, size_t size);
/* Loads a code of the device; where the driver refuses machine code, the PTX that it was made of.
 */
bool braid_cuda_load_module(const cuda_gpu *gpu, const braid_device_v1 *device,
                            const braid_code_v1 *code, cuda_module *module, char *error,
                            size_t size);
/* The plan of the launches of a code, or of a device without code; NULL where it is missing. */
const braid_code_v1 *braid_cuda_find_plan(const braid_device_v1 *device, const braid_code_v1 *code);

/* ---- Programs (program.c) ---- */

/* Loads the code of a model's device. NULL, and why in `error`. */
cuda_program *braid_cuda_program_load(const cuda_gpu *gpu, const braid_device_model *model,
                                      char *error, size_t size);
void braid_cuda_program_unload(const cuda_gpu *gpu, cuda_program *program);

/* Starts a function in a stream, as one graph, which is kept for the next run with these buffers.
 * False, and why in `error`. One thread at a time for a GPU. */
bool braid_cuda_program_start(const cuda_gpu *gpu, cuda_program *program, int64_t function,
                              const cuda_buffers *buffers, cuda_stream stream, char *error,
                              size_t size);

/* Forgets graphs that use an arena. */
void braid_cuda_program_forget(const cuda_gpu *gpu, cuda_program *program, cuda_address arena);

/* The model of a program, and what its functions take at most: of inputs and outputs together, each
 * aligned, and of buffers. */
const braid_device_model *braid_cuda_program_model(const cuda_program *program);
int64_t braid_cuda_program_port_bytes(const cuda_program *program);

/* The memory that a buffer takes in an arena. */
int64_t braid_cuda_aligned(int64_t bytes);

/* Evaluates to whether a call of the driver succeeded; else `error` is set. */
#define CUDA_TRY(GPU, ERROR, SIZE, NAME, ...)                                                      \
  braid_cuda_succeeded((GPU), #NAME, (GPU)->driver->NAME(__VA_ARGS__), (ERROR), (SIZE))
bool braid_cuda_succeeded(const cuda_gpu *gpu, const char *call, cuda_result result, char *error,
                          size_t size);

#endif /* BRAID_CUDA_PROGRAM_H */
