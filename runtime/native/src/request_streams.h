/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Streams: requests in a ring, stages that take them in order, and workers that run stages.
 *
 * A stage may begin with the next request when the stages that it reads have ended with it, and
 * each channel that it writes has a slot that all readers are done with. Requests begin in order; a
 * stage of several workers may be at as many requests, and end with them in any order. The oldest
 * request that is not done can always go on, however many slots there are: what it waits for are
 * stages that work on it, and slots of older requests. So no stream comes to a halt, in whatever
 * order workers choose.
 */
#ifndef BRAID_STREAMS_H
#define BRAID_STREAMS_H

#include "devices.h"
#include "internal.h"
#include "observer.h"

#include <pthread.h>
#include <sys/types.h>

enum { BRAID_STREAM_ERROR = 512 };

typedef struct braid_request {
  void **buffers;   /* of inputs, then of outputs */
  int64_t **shapes; /* of inputs, then of outputs, where a dim is open; else NULL */
  bool failed;
  char error[BRAID_STREAM_ERROR];
} braid_request;

/* The condition on another stage for one to begin with request i. */
typedef struct braid_need {
  int64_t stage;
  int64_t lag; /* it has ended with request i - lag */
} braid_need;

typedef struct braid_stage_state {
  int64_t *functions; /* by worker: the function of the model that it runs, or -1 for none */
  int64_t need_count;
  braid_need *needs;
  int64_t begun; /* requests that it has begun with, in order */
  int64_t done;  /* requests that have passed it, all from the first on */
  bool *ended;   /* of later stages, by slot of the ring: whether they have passed it */
  int64_t nanoseconds;
} braid_stage_state;

typedef struct braid_stream_worker {
  braid_stream_t *stream;
  pthread_cond_t wake;
  int64_t running; /* the stage that it is at, or -1 */
  void **buffers;  /* of the request that it works on */
  uint64_t since;
  bool live;
} braid_stream_worker;

struct braid_stream {
  braid_model_t *model;
  braid_context_t *context;
  braid_context_t *host; /* of stages that the host runs; NULL if there are none */
  pid_t owner;
  int64_t stage_count, worker_count, capacity;
  braid_stage_state *stages; /* a model without stages counts as one */
  braid_stream_worker *workers;
  uint64_t *counts, *times; /* of the profile's counters, under the lock */
  char **slots;             /* of each channel, one after the other */
  braid_request *requests;
  int64_t **taken_shapes; /* of outputs of the last result */
  braid_trace_t *trace;   /* of its contexts too; NULL for none; under the lock */
  uint64_t deadline;
  bool goes_on;
  unsigned float_mode; /* of the thread that opened it */
  int references;      /* of the opener and of each worker that lives; under the lock */
  pthread_mutex_t
      lock; /* protects all fields below, and `done`, `nanoseconds` and the requests' failures */
  pthread_cond_t changed;
  int64_t pushed, popped;
  int64_t last; /* the request with which the stream ends; INT64_MAX for none */
  bool closing;
  char lost[BRAID_STREAM_ERROR]; /* why, once it is */
};

/* Whether the launches of a model are stages of streams. */
static inline bool braid_has_stages(const braid_model_v2 *model) { return model->stage_count > 0; }

/* Bytes from one slot of a channel to the next. */
static inline size_t braid_slot_stride(const braid_channel_v1 *channel) {
  return ((size_t)channel->bytes + 63) / 64 * 64;
}

/* Makes requests, stages, workers (without threads) and slots; false and the error set where there
 * is no memory. Frees the parts that were made. */
bool braid_stream_build(braid_stream_t *stream);
void braid_stream_free(braid_stream_t *stream);

/* The main function of workers' threads; the argument is a worker. */
void *braid_stream_serve(void *worker);

/* Called with the lock: gives up one reference, and the lock. */
void braid_stream_release(braid_stream_t *stream);

/* With the lock: requests that have passed all stages. */
int64_t braid_stream_finished(const braid_stream_t *stream);

#endif /* BRAID_STREAMS_H */
