/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Memory of launches under way: pinned and on the device, with the events that chain what is done
 * with it, and the copies of inputs and outputs.
 */
#include "../message.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

void braid_cuda_close_slot(const cuda_gpu *gpu, slot *own) {
  for (int e = 0; e < EVENTS; ++e)
    if (own->events[e] != NULL)
      gpu->driver->event_destroy(own->events[e]);
  if (own->device != 0)
    gpu->driver->release(own->device);
  if (own->pinned != NULL)
    gpu->driver->release_host(own->pinned);
  *own = (slot){0};
}

/* Adds to a message how much there is of the GPU's memory. */
void braid_cuda_say_memory(const cuda_gpu *gpu, char *error, size_t size) {
  size_t available = 0, total = 0;
  braid_message message = braid_message_in(error, size);
  if (gpu->driver->memory_info(&available, &total) == CUDA_OK)
    braid_append(&message, "; %zu of the GPU's %zu bytes are free", available, total);
}

bool braid_cuda_open_slot(const cuda_gpu *gpu, slot *own, int64_t bytes, char *error, size_t size) {
  static const unsigned flags[EVENTS] = {CUDA_EVENT_NO_TIME, CUDA_EVENT_NO_TIME, 0, 0,
                                         CUDA_EVENT_BLOCKING | CUDA_EVENT_NO_TIME};
  if (!CUDA_TRY(gpu, error, size, allocate, &own->device, (size_t)bytes)) {
    braid_message message = braid_message_in(error, size);
    braid_append(&message, " for %lld bytes of inputs and outputs", (long long)bytes);
    braid_cuda_say_memory(gpu, error, size);
    own->device = 0;
    return false;
  }
  void *pinned = NULL;
  if (!CUDA_TRY(gpu, error, size, allocate_host, &pinned, (size_t)bytes, 0))
    return false;
  own->pinned = pinned;
  for (int e = 0; e < EVENTS; ++e)
    if (!CUDA_TRY(gpu, error, size, event_create, &own->events[e], flags[e])) {
      own->events[e] = NULL;
      return false;
    }
  return true;
}

/* ---- Copies ---- */

/* The GPU address of a buffer, or 0 if it is not memory of this GPU. The driver does not know other
 * memory: a query for a single attribute would be an error. */
static cuda_address on_device(const cuda_gpu *gpu, const void *buffer) {
  int kind = 0, ordinal = -1;
  int attributes[] = {CUDA_POINTER_MEMORY, CUDA_POINTER_ORDINAL};
  void *values[] = {&kind, &ordinal};
  cuda_address address = (cuda_address)(uintptr_t)buffer;
  bool known = gpu->driver->pointer_attributes(2, attributes, values, address) == CUDA_OK;
  return known && kind == CUDA_MEMORY_DEVICE && ordinal == gpu->ordinal ? address : 0;
}

const braid_function_v1 *braid_cuda_function_of(const waiting *own) {
  const braid_device_model *model = braid_cuda_program_model(own->model->program);
  return &model->model->functions[own->submission->function];
}

/* Where port `number` of a launch lies in a slot, and how many bytes it has. */
static int64_t port_offset(const braid_function_v1 *function, int64_t number) {
  int64_t offset = 0;
  for (int64_t p = 0; p < number; ++p)
    offset += braid_cuda_aligned(function->bytes[p]);
  return offset;
}

bool braid_cuda_copies_little(const cuda_device *device, const waiting *own, int64_t most) {
  const braid_function_v1 *function = braid_cuda_function_of(own);
  int64_t bytes = 0;
  for (int64_t i = 0; i < function->input_count; ++i)
    if (on_device(&device->gpu, own->submission->inputs[i]) == 0)
      bytes += function->bytes[i];
  return bytes <= most;
}

bool braid_cuda_feed_inputs(cuda_device *device, const waiting *own, cuda_address *addresses,
                            char *error, size_t size) {
  const braid_function_v1 *function = braid_cuda_function_of(own);
  for (int64_t i = 0; i < function->input_count; ++i) {
    const void *source = own->submission->inputs[i];
    int64_t offset = port_offset(function, i);
    addresses[i] = on_device(&device->gpu, source);
    if (addresses[i] != 0) {
      own->slot->given = true;
      continue;
    }
    addresses[i] = own->slot->device + (cuda_address)offset;
    size_t bytes = (size_t)function->bytes[i];
    if (bytes == 0)
      continue;
    memcpy(own->slot->pinned + offset, source, bytes);
    if (!CUDA_TRY(&device->gpu, error, size, copy_in_async, addresses[i],
                  own->slot->pinned + offset, bytes, device->streams[STREAM_IN]))
      return false;
    own->slot->copied_in = true;
  }
  return true;
}

void braid_cuda_choose_outputs(const cuda_device *device, const waiting *own,
                               cuda_address *addresses) {
  const braid_function_v1 *function = braid_cuda_function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    addresses[o] = on_device(&device->gpu, own->submission->outputs[o]);
    bool elsewhere = addresses[o] == 0;
    own->slot->given |= !elsewhere;
    own->slot->copied_out |= elsewhere;
    if (elsewhere)
      addresses[o] =
          own->slot->device + (cuda_address)port_offset(function, function->input_count + o);
  }
}

bool braid_cuda_fetch_outputs(cuda_device *device, const waiting *own,
                              const cuda_address *addresses, char *error, size_t size) {
  const braid_function_v1 *function = braid_cuda_function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    int64_t offset = port_offset(function, function->input_count + o);
    size_t bytes = (size_t)function->bytes[function->input_count + o];
    if (bytes == 0 || addresses[o] != own->slot->device + (cuda_address)offset)
      continue;
    if (!CUDA_TRY(&device->gpu, error, size, copy_out_async, own->slot->pinned + offset,
                  addresses[o], bytes, device->streams[STREAM_OUT]))
      return false;
  }
  return true;
}

/* Copies results from pinned memory to where the host wants them. */
void braid_cuda_drain_outputs(const cuda_device *device, const waiting *own) {
  const braid_function_v1 *function = braid_cuda_function_of(own);
  for (int64_t o = 0; o < function->output_count; ++o) {
    int64_t offset = port_offset(function, function->input_count + o);
    size_t bytes = (size_t)function->bytes[function->input_count + o];
    void *target = own->submission->outputs[o];
    if (bytes > 0 && on_device(&device->gpu, target) == 0)
      memcpy(target, own->slot->pinned + offset, bytes);
  }
}
