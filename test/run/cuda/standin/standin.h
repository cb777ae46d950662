/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A stand-in of libcuda: it records every call, checks every argument, executes kernels by the
 * emulator, and lets calls fail. The settings from the environment:
 *
 *   STANDIN_LOG=FILE          calls, one a line, and behind `VIOLATION` what is wrong with one
 *   STANDIN_FAIL=CALL:N:CODE  the N-th call of that name fails with this number (2: out of memory)
 *   STANDIN_ORDER=late|early|SEED  when work of streams is done: no sooner than somebody waits for
 *                             it (by default), at once, or at random
 *   STANDIN_CAPABILITY=8.0    of its GPUs, of which there are STANDIN_DEVICES=1
 *   STANDIN_MEMORY=BYTES      that a GPU has
 *   BRAID_CUDA_EMULATED=DIR   where code is that emulates modules: `DIGEST.so`, by the FNV-1a
 * digest of what is loaded
 *
 * Memory of the device cannot be touched while nothing runs there: whoever does gets a signal.
 */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int result;
typedef uint64_t address;

enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209,
  INVALID_PTX = 218,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  LAUNCH_FAILED = 719,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  MAX_DEVICES = 8,
  MAX_ARGUMENTS = 64,
  MAX_NAME = 128
};

typedef enum kind {
  CONTEXT,
  DEVICE_MEMORY,
  PINNED,
  MODULE,
  FUNCTION,
  STREAM,
  EVENT,
  GRAPH,
  EXEC
} kind;

typedef struct object object;

/* Anything with a handle. Handles are never used again. */
struct object {
  object *next;
  kind kind;
  bool alive;
  int device;
  char *base; /* of memory */
  size_t bytes;
  void *own; /* known facts about the other kinds */
};

/* A function of a module, by its PTX. */
typedef struct entry {
  char name[MAX_NAME];
  int parameters; /* -1 where it is not known */
  int sizes[MAX_ARGUMENTS];
  int threads;            /* that a block must have; 0 for any number */
  size_t shared, dynamic; /* declared bytes, and requested ones */
  void (*body)(void *const *arguments, int64_t blocks, int64_t threads);
  struct module *module;
  object *object;
} entry;

typedef struct module {
  void *library; /* that emulates it; NULL for none */
  int (*status)(char *reason, size_t size);
  entry *entries;
  int count;
} module;

/* One piece of work in a stream. */
typedef struct work {
  struct work *next;
  enum { COPY, KERNEL, RECORD, WAIT, GRAPH_LAUNCH } what;
  void *to; /* of a copy */
  const void *from;
  size_t bytes;
  entry *entry;
  int64_t blocks, threads, shared;
  uint64_t values[MAX_ARGUMENTS][16];
  object *event;        /* it records */
  struct stream *other; /* whose work up to `until` it waits for */
  int64_t until;
  struct work *inner; /* of a graph */
} work;

typedef struct stream {
  work *first, *last;
  int64_t enqueued, done;
  work *captured, *captured_last;
  bool capturing, invalid;
  void *thread; /* that captures */
  double time;
} stream;

typedef struct event {
  stream *stream; /* NULL before it is recorded */
  int64_t number;
  bool timed, pending_time;
  int asked; /* how often whether it is ready */
  double time;
} event;

typedef struct graph {
  work *first;
} graph;

/* ---- calls.c: what every call begins with ---- */

/* Writes the call to the log; the result is not OK if it is to fail, or is not allowed. */
result begin(const char *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
result finish(result code);

enum { NEEDS_CONTEXT = 1, NOT_IN_CAPTURE = 2 };
result allowed(int needs);

/* Notes that something is wrong with the call; gives the code. */
result wrong(result code, const char *format, ...) __attribute__((format(printf, 2, 3)));

object *add(kind kind);
/* NULL, and a violation noted, where it is not one that is alive. */
object *find(kind kind, const void *handle);
void retire(object *one);
object *current_context(void);
void *this_thread(void);
extern object *objects;
extern result sticky;
bool capturing_here(void);

/* ---- memory.c ---- */

/* The allocation that all of [begin, begin + bytes) is in; NULL, and a violation noted. */
object *inside(kind kind, const void *begin, size_t bytes, const char *what);
void open_memory(void); /* lets work use the device's */
void close_memory(void);

/* ---- streams.c ---- */

void run_until(stream *own, int64_t number);
void run_all(void);
bool is_idle(void);
void end_legacy_stream(int device); /* with its context */
void some_work(void);
result enqueue(void *handle, work item);

/* ---- modules.c ---- */

void run_kernel(const work *one);
void free_module(module *own);

#endif /* STANDIN_H */
