/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The functions of NVIDIA's driver, libcuda, that braid calls, found when a device is opened. The
 * declarations are written after "CUDA Driver API": nothing of CUDA is needed to build the runtime.
 */
#ifndef BRAID_CUDA_DRIVER_H
#define BRAID_CUDA_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int cuda_result;
typedef uint64_t cuda_address;
typedef struct cuda_context *cuda_context;
typedef struct cuda_module *cuda_module;
typedef struct cuda_function *cuda_function;
typedef struct cuda_stream *cuda_stream;
typedef struct cuda_event *cuda_event;
typedef struct cuda_graph *cuda_graph;
typedef struct cuda_graph_exec *cuda_graph_exec;

/* The legacy default stream (CU_STREAM_LEGACY), which waits for all streams that are not
 * CUDA_STREAM_NON_BLOCKING. */
#define CUDA_STREAM_LEGACY ((cuda_stream)(uintptr_t)0x1)

/* Describes a tensor to the unit that copies boxes of it; opaque. */
typedef struct cuda_tensor_map {
  _Alignas(64) uint64_t words[16];
} cuda_tensor_map;

enum {
  CUDA_OK = 0,
  CUDA_NOT_READY = 600, /* CUDA_ERROR_NOT_READY */
  CUDA_MAJOR = 75,      /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
  CUDA_MINOR = 76,
  CUDA_SHARED_OPTIN = 97,        /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
  CUDA_FUNCTION_MAX_THREADS = 0, /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */
  CUDA_FUNCTION_SHARED = 1,      /* CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES */
  CUDA_FUNCTION_DYNAMIC = 8,     /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  CUDA_STREAM_NON_BLOCKING = 1,  /* CU_STREAM_NON_BLOCKING */
  CUDA_EVENT_BLOCKING = 1,       /* CU_EVENT_BLOCKING_SYNC */
  CUDA_EVENT_NO_TIME = 2,        /* CU_EVENT_DISABLE_TIMING */
  CUDA_CAPTURE_THREAD = 1,       /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
  CUDA_POINTER_MEMORY = 2,       /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
  CUDA_POINTER_ORDINAL = 9,      /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
  CUDA_MEMORY_DEVICE = 2,        /* CU_MEMORYTYPE_DEVICE */
  CUDA_JIT_ERROR_LOG = 5,        /* CU_JIT_ERROR_LOG_BUFFER */
  CUDA_JIT_ERROR_LOG_BYTES = 6   /* CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
};

/* Name here, the symbol, the parameters. */
#define BRAID_CUDA_CALLS(X)                                                                        \
  X(init, "cuInit", (unsigned flags))                                                              \
  X(get_error_name, "cuGetErrorName", (cuda_result result, const char **name))                     \
  X(get_error_string, "cuGetErrorString", (cuda_result result, const char **text))                 \
  X(device_count, "cuDeviceGetCount", (int *count))                                                \
  X(device_get, "cuDeviceGet", (int *device, int ordinal))                                         \
  X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))             \
  X(context_retain, "cuDevicePrimaryCtxRetain", (cuda_context * context, int device))              \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                 \
  X(context_push, "cuCtxPushCurrent_v2", (cuda_context context))                                   \
  X(context_pop, "cuCtxPopCurrent_v2", (cuda_context * context))                                   \
  X(memory_info, "cuMemGetInfo_v2", (size_t *available, size_t *total))                            \
  X(allocate, "cuMemAlloc_v2", (cuda_address * memory, size_t bytes))                              \
  X(release, "cuMemFree_v2", (cuda_address memory))                                                \
  X(allocate_host, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))                \
  X(release_host, "cuMemFreeHost", (void *memory))                                                 \
  X(copy_in, "cuMemcpyHtoD_v2", (cuda_address to, const void *from, size_t bytes))                 \
  X(copy_in_async, "cuMemcpyHtoDAsync_v2",                                                         \
    (cuda_address to, const void *from, size_t bytes, cuda_stream stream))                         \
  X(copy_out_async, "cuMemcpyDtoHAsync_v2",                                                        \
    (void *to, cuda_address from, size_t bytes, cuda_stream stream))                               \
  X(copy_async, "cuMemcpyDtoDAsync_v2",                                                            \
    (cuda_address to, cuda_address from, size_t bytes, cuda_stream stream))                        \
  X(pointer_attributes, "cuPointerGetAttributes",                                                  \
    (unsigned count, int *attributes, void **values, cuda_address pointer))                        \
  X(module_load, "cuModuleLoadDataEx",                                                             \
    (cuda_module * module, const void *image, unsigned count, int *options, void **values))        \
  X(module_unload, "cuModuleUnload", (cuda_module module))                                         \
  X(module_function, "cuModuleGetFunction",                                                        \
    (cuda_function * function, cuda_module module, const char *name))                              \
  X(function_attribute, "cuFuncGetAttribute", (int *value, int attribute, cuda_function function)) \
  X(set_function_attribute, "cuFuncSetAttribute",                                                  \
    (cuda_function function, int attribute, int value))                                            \
  X(stream_create, "cuStreamCreate", (cuda_stream * stream, unsigned flags))                       \
  X(stream_destroy, "cuStreamDestroy_v2", (cuda_stream stream))                                    \
  X(stream_wait, "cuStreamWaitEvent", (cuda_stream stream, cuda_event event, unsigned flags))      \
  X(stream_synchronize, "cuStreamSynchronize", (cuda_stream stream))                               \
  X(event_create, "cuEventCreate", (cuda_event * event, unsigned flags))                           \
  X(event_destroy, "cuEventDestroy_v2", (cuda_event event))                                        \
  X(event_record, "cuEventRecord", (cuda_event event, cuda_stream stream))                         \
  X(event_query, "cuEventQuery", (cuda_event event))                                               \
  X(event_synchronize, "cuEventSynchronize", (cuda_event event))                                   \
  X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, cuda_event begin, cuda_event end))  \
  X(launch, "cuLaunchKernel",                                                                      \
    (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream,                \
     void **arguments, void **extra))                                                              \
  X(capture_begin, "cuStreamBeginCapture_v2", (cuda_stream stream, int mode))                      \
  X(capture_end, "cuStreamEndCapture", (cuda_stream stream, cuda_graph * graph))                   \
  X(graph_instantiate, "cuGraphInstantiateWithFlags",                                              \
    (cuda_graph_exec * exec, cuda_graph graph, unsigned long long flags))                          \
  X(graph_destroy, "cuGraphDestroy", (cuda_graph graph))                                           \
  X(graph_launch, "cuGraphLaunch", (cuda_graph_exec exec, cuda_stream stream))                     \
  X(graph_exec_destroy, "cuGraphExecDestroy", (cuda_graph_exec exec))                              \
  X(tensor_map_encode, "cuTensorMapEncodeTiled",                                                   \
    (cuda_tensor_map * map, int type, uint32_t rank, void *address, const uint64_t *extents,       \
     const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,          \
     int swizzle, int promotion, int fill))

/* The driver's functions, and the names of their symbols in messages. */
typedef struct cuda_driver {
#define FIELD(NAME, SYMBOL, PARAMETERS) cuda_result(*NAME) PARAMETERS;
  BRAID_CUDA_CALLS(FIELD)
#undef FIELD
} cuda_driver;

/* The driver of this process, loaded once: the library that the environment variable
 * BRAID_CUDA_LIBRARY names, or libcuda.so.1. Returns NULL, with the reason in `error`, if there is
 * none. */
const cuda_driver *braid_cuda_load_driver(char *error, size_t size);

/* Writes `call: NAME (text)` for the result of a call that failed. */
void braid_cuda_describe(const cuda_driver *driver, const char *call, cuda_result result,
                         char *error, size_t size);

#endif /* BRAID_CUDA_DRIVER_H */
