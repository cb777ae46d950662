/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The common definitions of the device plugin `cuda`: an open GPU, its models, and the launches in
 * progress.
 */
#ifndef BRAID_CUDA_DEVICE_H
#define BRAID_CUDA_DEVICE_H

#include "program.h"

#include <pthread.h>
#include <sys/types.h>

enum { SLOTS = 2, LONG_ERROR = 512 };

typedef enum stream_kind { STREAM_IN, STREAM_COMPUTE, STREAM_OUT, STREAMS } stream_kind;

typedef enum event_kind {
  EVENT_GIVEN,
  EVENT_IN,
  EVENT_BEGIN,
  EVENT_COMPUTED,
  EVENT_OUT,
  EVENTS
} event_kind;

/* Memory and events of one launch under way. */
typedef struct slot {
  cuda_address device;
  char *pinned;
  cuda_event events[EVENTS];
  braid_submission *submission; /* NULL while it is free */
  bool started;                 /* the GPU has got all of it */
  bool given;                   /* it uses memory of the GPU that others have */
  bool copied_in, copied_out;   /* inputs or outputs are the host's */
} slot;

/* A model that is loaded. */
typedef struct loaded {
  struct loaded *next;
  cuda_program *program;
  slot slots[SLOTS];
  int next_slot;
} loaded;

typedef struct waiting {
  braid_submission *submission;
  loaded *model;
  slot *slot; /* from when it is fed */
} waiting;

typedef struct cuda_device {
  cuda_gpu gpu;
  cuda_stream streams[STREAMS];
  pid_t process;
  pthread_mutex_t graphs; /* protects programs and the list of them */
  loaded *models;
  pthread_mutex_t lock; /* of all below */
  pthread_cond_t changed;
  waiting *ring; /* submitted, and not ended: begin at `ended` */
  int64_t capacity;
  int64_t submitted, fed, ended; /* how many so far */
  bool feeding, draining;        /* a thread does so, without the lock */
  bool threads, closing;
  pthread_t feeder, drainer;
} cuda_device;

/* Makes the GPU's context current, in the process that has opened it; false, and why in `error`. */
bool braid_cuda_enter(const cuda_device *device, char *error, size_t size);
void braid_cuda_leave(const cuda_device *device);

/* Adds to a message how much there is of the GPU's memory. */
void braid_cuda_say_memory(const cuda_gpu *gpu, char *error, size_t size);

/* ---- Slots (slots.c) ---- */

bool braid_cuda_open_slot(const cuda_gpu *gpu, slot *own, int64_t bytes, char *error, size_t size);
void braid_cuda_close_slot(const cuda_gpu *gpu, slot *own);

/* The executable form of a launch. */
const braid_function_v1 *braid_cuda_function_of(const waiting *own);

/* Whether a launch has to copy no more than so many bytes of the host's inputs. */
bool braid_cuda_copies_little(const cuda_device *device, const waiting *own, int64_t most);

/* Inputs and outputs of a launch: their addresses on the device, copies of host buffers, started in
 * their streams, and copies of results from pinned memory to their destination. */
bool braid_cuda_feed_inputs(cuda_device *device, const waiting *own, cuda_address *addresses,
                            char *error, size_t size);
void braid_cuda_choose_outputs(const cuda_device *device, const waiting *own,
                               cuda_address *addresses);
bool braid_cuda_fetch_outputs(cuda_device *device, const waiting *own,
                              const cuda_address *addresses, char *error, size_t size);
void braid_cuda_drain_outputs(const cuda_device *device, const waiting *own);

/* ---- Launches in their order (queue.c) ---- */

int braid_cuda_submit(void *opened, braid_submission *submission);
void braid_cuda_wait_for(void *opened, int64_t ticket);
/* Waits for what was submitted, and ends the threads. */
void braid_cuda_close_queue(cuda_device *device);

#endif /* BRAID_CUDA_DEVICE_H */
