/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Streams, events and graphs. Work is kept in its stream, and done when the order that the
 * environment asks for says: late, at once, or at random.
 */
#define _GNU_SOURCE
#include "standin.h"

#include <stdlib.h>
#include <string.h>

/* ---- Doing work ---- */

static void run_work(const work *one) {
  switch (one->what) {
  case COPY:
    open_memory();
    memcpy(one->to, one->from, one->bytes);
    close_memory();
    break;
  case KERNEL:
    run_kernel(one);
    break;
  case GRAPH_LAUNCH:
    for (const work *inner = one->inner; inner != NULL; inner = inner->next)
      run_work(inner);
    break;
  default:
    break;
  }
}

static void run_first(stream *own) {
  work *one = own->first;
  if (one->what == WAIT)
    run_until(one->other, one->until);
  if (sticky == OK)
    run_work(one);
  own->time += one->what == KERNEL || one->what == GRAPH_LAUNCH ? 0.01 : 0.001;
  if (one->what == RECORD) {
    event *recorded = one->event->own;
    if (recorded->stream == own && recorded->number == own->done + 1)
      recorded->time = own->time;
  }
  own->first = one->next;
  if (own->first == NULL)
    own->last = NULL;
  ++own->done;
  free(one);
}

void run_until(stream *own, int64_t number) {
  while (own->done < number && own->first != NULL)
    run_first(own);
}

void run_all(void) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at->kind == STREAM && at->alive) {
      stream *own = at->own;
      run_until(own, own->enqueued);
    }
}

bool is_idle(void) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at->kind == STREAM && at->alive && ((stream *)at->own)->first != NULL)
      return false;
  return true;
}

/* Work that is done after each call. */
void some_work(void) {
  static unsigned long long state;
  const char *order = getenv("STANDIN_ORDER");
  if (order == NULL || strcmp(order, "late") == 0)
    return;
  if (strcmp(order, "early") == 0) {
    run_all();
    return;
  }
  if (state == 0)
    state = strtoull(order, NULL, 10) * 2 + 1;
  for (object *at = objects; at != NULL; at = at->next) {
    if (at->kind != STREAM || !at->alive)
      continue;
    state = state * 6364136223846793005u + 1442695040888963407u;
    stream *own = at->own;
    if (state >> 62 == 0)
      run_until(own, own->done + 1);
  }
}

bool capturing_here(void) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at->kind == STREAM && at->alive && ((stream *)at->own)->capturing &&
        ((stream *)at->own)->thread == this_thread())
      return true;
  return false;
}

static object *legacy[MAX_DEVICES];

/* The legacy default stream of the device whose context is current. */
static stream *legacy_stream(void) {
  object **own = &legacy[current_context()->device];
  if (*own == NULL) {
    *own = add(STREAM);
    (*own)->own = calloc(1, sizeof(stream));
  }
  return (*own)->own;
}

void end_legacy_stream(int device) {
  if (legacy[device] != NULL)
    retire(legacy[device]);
  legacy[device] = NULL;
}

static stream *stream_of(void *handle) {
  if (handle == (void *)1 && current_context() != NULL)
    return legacy_stream();
  object *found = find(STREAM, handle);
  return found != NULL ? found->own : NULL;
}

result enqueue(void *handle, work item) {
  stream *own = stream_of(handle);
  if (own == NULL)
    return INVALID_HANDLE;
  if (sticky != OK)
    return sticky;
  work *kept = malloc(sizeof *kept);
  *kept = item;
  kept->next = NULL;
  if (own->capturing) {
    if (item.what == RECORD || item.what == WAIT || item.what == GRAPH_LAUNCH) {
      own->invalid = true;
      free(kept);
      return wrong(CAPTURE_UNSUPPORTED, "the plugin captures kernels and copies of one stream");
    }
    *(own->captured_last != NULL ? &own->captured_last->next : &own->captured) = kept;
    own->captured_last = kept;
    return OK;
  }
  *(own->last != NULL ? &own->last->next : &own->first) = kept;
  own->last = kept;
  ++own->enqueued;
  return OK;
}

/* ---- Streams ---- */

result cuStreamCreate(object **handle, unsigned flags) {
  result code = begin("cuStreamCreate", "%u", flags);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK && flags > 1)
    code = wrong(INVALID_VALUE, "unknown flags");
  if (code == OK) {
    *handle = add(STREAM);
    (*handle)->own = calloc(1, sizeof(stream));
  }
  return finish(code);
}

result cuStreamDestroy_v2(object *handle) {
  result code = begin("cuStreamDestroy_v2", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  stream *own = code == OK ? stream_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && own->capturing)
    wrong(0, "it captures");
  if (code == OK && own->first != NULL)
    wrong(0, "it has work that nobody has waited for");
  if (code == OK) {
    run_until(own, own->enqueued);
    retire(handle);
  }
  return finish(code);
}

result cuStreamSynchronize(object *handle) {
  result code = begin("cuStreamSynchronize", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  stream *own = code == OK ? stream_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK) {
    run_until(own, own->enqueued);
    code = sticky;
  }
  return finish(code);
}

result cuStreamWaitEvent(object *handle, object *waited, unsigned flags) {
  result code = begin("cuStreamWaitEvent", "%p, %p, %u", (void *)handle, (void *)waited, flags);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  object *found = code == OK ? find(EVENT, waited) : NULL;
  if (code == OK && (found == NULL || flags != 0))
    code = found == NULL ? INVALID_HANDLE : wrong(INVALID_VALUE, "unknown flags");
  if (code == OK) {
    event *own = found->own;
    if (own->stream == NULL)
      wrong(0, "the event was never recorded, so that nothing is waited for");
    else
      code = enqueue(handle, (work){.what = WAIT, .other = own->stream, .until = own->number});
  }
  return finish(code);
}

/* ---- Events ---- */

result cuEventCreate(object **handle, unsigned flags) {
  result code = begin("cuEventCreate", "%u", flags);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK && flags > 7)
    code = wrong(INVALID_VALUE, "unknown flags");
  if (code == OK) {
    event *made = calloc(1, sizeof *made);
    made->timed = (flags & 2) == 0;
    *handle = add(EVENT);
    (*handle)->own = made;
  }
  return finish(code);
}

static event *event_of(object *handle) {
  object *found = find(EVENT, handle);
  return found != NULL ? found->own : NULL;
}

static bool has_ended(const event *own) {
  return own->stream == NULL || own->stream->done >= own->number;
}

result cuEventDestroy_v2(object *handle) {
  result code = begin("cuEventDestroy_v2", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  event *own = code == OK ? event_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && !has_ended(own))
    wrong(0, "it is recorded, and nobody has waited for it");
  if (code == OK)
    retire(handle);
  return finish(code);
}

result cuEventRecord(object *handle, object *at) {
  result code = begin("cuEventRecord", "%p, %p", (void *)handle, (void *)at);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  event *own = code == OK ? event_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && !has_ended(own))
    wrong(0, "it is recorded again before what it stands for has ended");
  if (code == OK)
    code = enqueue(at, (work){.what = RECORD, .event = handle});
  if (code == OK) {
    own->stream = stream_of(at);
    own->number = own->stream->enqueued;
  }
  return finish(code);
}

/* Of recorded events, every other one is never ready, and the others are from the second query
 * on. */
result cuEventQuery(object *handle) {
  result code = begin("cuEventQuery", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  event *own = code == OK ? event_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code != OK)
    return finish(code);
  if (own->stream == NULL)
    wrong(0, "it was never recorded");
  if (own->stream == NULL || own->number % 2 == 1 || ++own->asked < 2)
    return finish(NOT_READY);
  own->asked = 0;
  run_until(own->stream, own->number);
  return finish(sticky);
}

result cuEventSynchronize(object *handle) {
  result code = begin("cuEventSynchronize", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  event *own = code == OK ? event_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && own->stream == NULL)
    wrong(0, "it was never recorded");
  if (code == OK && own->stream != NULL) {
    run_until(own->stream, own->number);
    code = sticky;
  }
  return finish(code);
}

result cuEventElapsedTime(float *milliseconds, object *first, object *second) {
  result code = begin("cuEventElapsedTime", "%p, %p", (void *)first, (void *)second);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  event *begun = code == OK ? event_of(first) : NULL, *ended = code == OK ? event_of(second) : NULL;
  if (code == OK && (begun == NULL || ended == NULL))
    code = INVALID_HANDLE;
  else if (code == OK && (!begun->timed || !ended->timed || !begun->stream || !ended->stream))
    code = wrong(INVALID_HANDLE, "an event has no time, or was not recorded");
  else if (code == OK && (!has_ended(begun) || !has_ended(ended)))
    code = wrong(NOT_READY, "an event is not there yet");
  if (code == OK)
    *milliseconds = (float)(ended->time - begun->time);
  if (code == OK && *milliseconds < 0)
    wrong(0, "the time is negative");
  return finish(code);
}

/* ---- Graphs ---- */

result cuStreamBeginCapture_v2(object *handle, int mode) {
  result code = begin("cuStreamBeginCapture_v2", "%p, %d", (void *)handle, mode);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  stream *own = code == OK ? stream_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && (mode < 0 || mode > 2 || own->capturing))
    code = wrong(INVALID_VALUE, "the mode is unknown, or it captures already");
  if (code == OK) {
    own->capturing = true;
    own->invalid = false;
    own->captured = own->captured_last = NULL;
    own->thread = this_thread();
  }
  return finish(code);
}

static void free_work(work *first) {
  while (first != NULL) {
    work *next = first->next;
    free(first);
    first = next;
  }
}

result cuStreamEndCapture(object *handle, object **made) {
  result code = begin("cuStreamEndCapture", "%p", (void *)handle);
  stream *own = stream_of(handle);
  if (own == NULL)
    return finish(INVALID_HANDLE);
  if (!own->capturing)
    return finish(wrong(INVALID_VALUE, "it does not capture"));
  if (own->thread != this_thread())
    return finish(wrong(905, "another thread began to capture"));
  own->capturing = false;
  *made = NULL;
  if (own->invalid || code != OK) {
    free_work(own->captured);
    return finish(code != OK ? code : CAPTURE_INVALIDATED);
  }
  *made = add(GRAPH);
  (*made)->own = own->captured;
  own->captured = NULL;
  return finish(OK);
}

result cuGraphInstantiateWithFlags(object **exec, object *from, unsigned long long flags) {
  result code = begin("cuGraphInstantiateWithFlags", "%p, %llu", (void *)from, flags);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  object *found = code == OK ? find(GRAPH, from) : NULL;
  if (code == OK && (found == NULL || flags != 0))
    code = found == NULL ? INVALID_HANDLE : wrong(INVALID_VALUE, "unknown flags");
  if (code != OK)
    return finish(code);
  *exec = add(EXEC);
  work **end = (work **)&(*exec)->own;
  for (const work *one = found->own; one != NULL; one = one->next) {
    *end = malloc(sizeof(work));
    **end = *one;
    (*end)->next = NULL;
    end = &(*end)->next;
  }
  return finish(OK);
}

result cuGraphDestroy(object *handle) {
  result code = begin("cuGraphDestroy", "%p", (void *)handle);
  object *found = code == OK ? find(GRAPH, handle) : NULL;
  if (code == OK && found == NULL)
    code = INVALID_HANDLE;
  if (code == OK) {
    free_work(found->own);
    retire(found);
  }
  return finish(code);
}

result cuGraphLaunch(object *handle, object *at) {
  result code = begin("cuGraphLaunch", "%p, %p", (void *)handle, (void *)at);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  object *found = code == OK ? find(EXEC, handle) : NULL;
  if (code == OK && found == NULL)
    code = INVALID_HANDLE;
  /* Its kernels may only use what is alive now. */
  for (const work *one = code == OK ? found->own : NULL; one != NULL; one = one->next)
    if (one->what == KERNEL && !one->entry->object->alive)
      code = wrong(INVALID_HANDLE, "a kernel's module was unloaded");
  if (code == OK)
    code = enqueue(at, (work){.what = GRAPH_LAUNCH, .inner = found->own});
  return finish(code);
}

/* The driver waits for one that runs. */
result cuGraphExecDestroy(object *handle) {
  result code = begin("cuGraphExecDestroy", "%p", (void *)handle);
  object *found = code == OK ? find(EXEC, handle) : NULL;
  if (code == OK && found == NULL)
    code = INVALID_HANDLE;
  if (code == OK) {
    run_all();
    free_work(found->own);
    retire(found);
  }
  return finish(code);
}
