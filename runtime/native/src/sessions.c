/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A state is the first bytes of a buffer. A step appends after them, so that nothing is copied as
 * long as the buffer is long enough and no fork has appended to it; otherwise the code copies the
 * elements to a new buffer of the session.
 */
#include "sessions.h"

#include "context.h"
#include "state_buffer.h"

#include <stdlib.h>
#include <string.h>

#define MOST_CAPACITY (INT64_C(1) << 40)

/* A state between two steps. */
typedef struct state {
  braid_state_buffer *buffer; /* NULL before it is known */
  size_t bytes;
  int64_t *shape; /* as code has it */
  bool is_fresh;  /* whether it became known in the step that is running */
} state;

struct braid_session {
  braid_model_t *model;
  int64_t count;
  int64_t capacity;
  state *states; /* has `count` elements */
  state *next;   /* those that the step makes which is running */
  int64_t *sizes;
  void **inputs; /* the lists of that step */
  void **outputs;
};

static const braid_state_v1 *declared(const braid_session_t *session, int64_t i) {
  return &session->model->descriptor->states[i];
}

static const braid_tensor_v2 *input_of(const braid_session_t *session, int64_t i) {
  return &session->model->descriptor->inputs[declared(session, i)->input];
}

static const braid_tensor_v2 *output_of(const braid_session_t *session, int64_t i) {
  return &session->model->descriptor->outputs[declared(session, i)->output];
}

static void copy_shape(const braid_tensor_v2 *tensor, int64_t *to, const int64_t *from) {
  if (tensor->rank > 0)
    memcpy(to, from, (size_t)tensor->rank * sizeof *to);
}

/* ---- Sessions ---- */

void braid_session_close(braid_session_t *session) {
  if (session == NULL)
    return;
  for (int64_t i = 0; session->states != NULL && i < session->count; ++i)
    braid_state_buffer_release(session->states[i].buffer);
  free(session->states);
  free(session->next);
  free(session->sizes);
  free(session->inputs);
  free(session->outputs);
  braid_model_close(session->model);
  free(session);
}

/* Places of the shapes of `states` and `next`. */
static void place_shapes(braid_session_t *session) {
  int64_t *place = session->sizes;
  for (int64_t i = 0; i < session->count; ++i) {
    session->states[i].shape = place;
    session->next[i].shape = place + input_of(session, i)->rank;
    place += 2 * input_of(session, i)->rank;
  }
}

static braid_session_t *create(braid_model_t *model, int64_t capacity) {
  const braid_model_v2 *descriptor = model->descriptor;
  braid_session_t *session = calloc(1, sizeof *session);
  if (session == NULL) {
    braid_set_error("out of memory for a session");
    return NULL;
  }
  braid_model_retain(model);
  session->model = model;
  session->capacity = capacity;
  session->count = braid_state_count(descriptor);
  size_t dims = 1;
  for (int64_t i = 0; i < session->count; ++i)
    dims += 2 * (size_t)input_of(session, i)->rank;
  session->states = calloc((size_t)session->count, sizeof *session->states);
  session->next = calloc((size_t)session->count, sizeof *session->next);
  session->sizes = calloc(dims, sizeof *session->sizes);
  session->inputs = calloc((size_t)descriptor->input_count + 1, sizeof(void *));
  session->outputs = calloc((size_t)descriptor->output_count + 1, sizeof(void *));
  if (session->states == NULL || session->next == NULL || session->sizes == NULL ||
      session->inputs == NULL || session->outputs == NULL) {
    braid_set_error("out of memory for a session");
    braid_session_close(session);
    return NULL;
  }
  place_shapes(session);
  return session;
}

braid_session_t *braid_session_create(braid_model_t *model, int64_t capacity) {
  if (braid_is_null(model, "model"))
    return NULL;
  if (capacity < 0 || capacity > MOST_CAPACITY) {
    braid_set_error("the capacity is %lld, expected a number of elements from 0 to %lld",
                    (long long)capacity, (long long)MOST_CAPACITY);
    return NULL;
  }
  if (braid_state_count(model->descriptor) == 0) {
    braid_set_error("the model has no state: name its states when you compile it");
    return NULL;
  }
  return create(model, capacity);
}

braid_session_t *braid_session_fork(const braid_session_t *session) {
  if (braid_is_null(session, "session"))
    return NULL;
  braid_session_t *other = create(session->model, session->capacity);
  if (other == NULL)
    return NULL;
  for (int64_t i = 0; i < session->count; ++i) {
    const state *own = &session->states[i];
    if (own->buffer == NULL)
      continue;
    braid_state_buffer_retain(own->buffer);
    other->states[i].buffer = own->buffer;
    other->states[i].bytes = own->bytes;
    copy_shape(input_of(session, i), other->states[i].shape, own->shape);
  }
  return other;
}

int braid_session_reset(braid_session_t *session) {
  if (braid_is_null(session, "session"))
    return 1;
  for (int64_t i = 0; i < session->count; ++i) {
    braid_state_buffer_release(session->states[i].buffer);
    session->states[i].buffer = NULL;
  }
  return 0;
}

/* ---- States ---- */

/* The dim, as code has it, along which a state is appended to: those before it are 1. */
static int64_t outermost(const braid_tensor_v2 *input) {
  for (int64_t d = 0; d < input->rank; ++d)
    if (input->shape[d] != 1)
      return d;
  return 0;
}

/* Whether the next state may be longer than a state: not where all dims of both are the same. */
static bool may_grow(const braid_session_t *session, int64_t i) {
  const braid_tensor_v2 *input = input_of(session, i), *output = output_of(session, i);
  if (declared(session, i)->appended == 0)
    return false;
  for (int64_t d = 0; d < input->rank; ++d) {
    int64_t dim = input->dims != NULL ? input->dims[d] : -1;
    int64_t other = output->dims != NULL ? output->dims[d] : -1;
    if (input->shape[d] != output->shape[d] || dim != other || (input->shape[d] < 0 && dim < 0))
      return true;
  }
  return false;
}

/* Bytes of a buffer for `capacity` elements along the dim that grows; false where they cannot be
 * counted. */
static bool capacity_bytes(const braid_tensor_v2 *input, const int64_t *shape, int64_t capacity,
                           size_t *bytes) {
  int64_t one[BRAID_MAX_RANK];
  for (int64_t d = 0; d < input->rank; ++d)
    one[d] = d == outermost(input) ? 1 : shape[d];
  return !__builtin_mul_overflow(braid_tensor_bytes(input, one), (size_t)capacity, bytes);
}

/* A buffer for a state of this shape, and for what is appended; NULL and the error set without
 * memory. */
static braid_state_buffer *buffer_of(const braid_session_t *session, int64_t i,
                                     const int64_t *shape) {
  const braid_tensor_v2 *input = input_of(session, i);
  size_t bytes = braid_tensor_bytes(input, shape), ample = 0;
  bool counts = !may_grow(session, i) || capacity_bytes(input, shape, session->capacity, &ample);
  braid_state_buffer *buffer =
      counts ? braid_state_buffer_create(bytes > ample ? bytes : ample, bytes) : NULL;
  if (buffer == NULL)
    braid_set_error("out of memory: state '%s' with a capacity of %lld elements", input->name,
                    (long long)session->capacity);
  return buffer;
}

/* The number of the state that an input is, -1 for none. */
static int64_t state_of(const braid_session_t *session, int64_t input) {
  for (int64_t i = 0; i < session->count; ++i)
    if (declared(session, i)->input == input)
      return i;
  return -1;
}

/* The same, with the error set for none. */
static int64_t known_state(const braid_session_t *session, int64_t input) {
  int64_t i = state_of(session, input);
  if (i < 0)
    braid_set_error("input %lld of the model is no state", (long long)input);
  return i;
}

int braid_session_set_state(braid_session_t *session, int64_t input, const int64_t *shape,
                            const void *data) {
  if (braid_is_null(session, "session"))
    return 1;
  int64_t i = known_state(session, input);
  if (i < 0 || !braid_check_input_shape(session->model->descriptor, input, shape))
    return 1;
  size_t bytes = braid_tensor_bytes(input_of(session, i), shape);
  if (bytes > 0 && braid_is_null(data, "state's data"))
    return 1;
  braid_state_buffer *buffer = buffer_of(session, i, shape);
  if (buffer == NULL)
    return 1;
  if (bytes > 0)
    memcpy(buffer->data, data, bytes);
  braid_state_buffer_release(session->states[i].buffer);
  session->states[i].buffer = buffer;
  session->states[i].bytes = bytes;
  copy_shape(input_of(session, i), session->states[i].shape, shape);
  return 0;
}

const int64_t *braid_session_shape(const braid_session_t *session, int64_t input) {
  if (braid_is_null(session, "session"))
    return NULL;
  int64_t i = known_state(session, input);
  if (i < 0)
    return NULL;
  if (session->states[i].buffer == NULL)
    braid_set_error("state '%s' is not known before a step", input_of(session, i)->name);
  return session->states[i].buffer == NULL ? NULL : session->states[i].shape;
}

const void *braid_session_data(const braid_session_t *session, int64_t input) {
  if (braid_session_shape(session, input) == NULL)
    return NULL;
  return session->states[state_of(session, input)].buffer->data;
}

int64_t braid_session_length(const braid_session_t *session) {
  if (braid_is_null(session, "session"))
    return -1;
  for (int64_t i = 0; i < session->count; ++i)
    if (may_grow(session, i)) {
      const state *own = &session->states[i];
      return own->buffer == NULL ? 0 : own->shape[outermost(input_of(session, i))];
    }
  braid_set_error("no state of the model grows");
  return -1;
}

/* ---- Steps ---- */

/* The size of one of the model's dims in an input that is no state, or in a state that was set; -1
 * where none has it. */
static int64_t told_size(const braid_session_t *session, const braid_context_t *context,
                         int64_t dim) {
  const braid_model_v2 *descriptor = session->model->descriptor;
  for (int64_t input = 0; input < descriptor->input_count; ++input) {
    const braid_tensor_v2 *tensor = &descriptor->inputs[input];
    int64_t i = state_of(session, input);
    const int64_t *shape = context->input_shapes[input];
    if (i >= 0)
      shape = session->states[i].buffer != NULL ? session->states[i].shape : NULL;
    for (int64_t d = 0; shape != NULL && tensor->dims != NULL && d < tensor->rank; ++d)
      if (tensor->dims[d] == dim && shape[d] != INT64_MAX)
        return shape[d];
  }
  return -1;
}

/* Writes the shape of a state that is not known yet: dims that nothing tells have no elements. */
static void first_shape(const braid_session_t *session, const braid_context_t *context, int64_t i,
                        int64_t *shape) {
  const braid_tensor_v2 *input = input_of(session, i);
  for (int64_t d = 0; d < input->rank; ++d) {
    int64_t dim = input->dims != NULL ? input->dims[d] : -1;
    int64_t told = dim >= 0 ? told_size(session, context, dim) : -1;
    shape[d] = input->shape[d] >= 0 ? input->shape[d] : told >= 0 ? told : 0;
  }
}

static bool fits(const braid_session_t *session, const braid_context_t *context) {
  if (braid_is_null(session, "session") || braid_is_null(context, "context"))
    return false;
  if (context->model != session->model)
    braid_set_error("the context is one of another model than the session");
  return context->model == session->model;
}

/* Whether all states are known or none is, else the error is set: zeros beside a state that was set
 * would be no state of the model's. */
static bool is_whole(const braid_session_t *session) {
  int64_t known = -1, unknown = -1;
  for (int64_t i = session->count - 1; i >= 0; --i) {
    if (session->states[i].buffer != NULL)
      known = i;
    else
      unknown = i;
  }
  if (known >= 0 && unknown >= 0)
    braid_set_error("state '%s' is set, and '%s' is not: set all of them, or none",
                    input_of(session, known)->name, input_of(session, unknown)->name);
  return known < 0 || unknown < 0;
}

int braid_session_set_shapes(const braid_session_t *session, braid_context_t *context) {
  if (!fits(session, context) || !is_whole(session))
    return 1;
  for (int64_t i = 0; i < session->count; ++i) {
    int64_t shape[BRAID_MAX_RANK];
    const int64_t *known = session->states[i].shape;
    if (session->states[i].buffer == NULL) {
      first_shape(session, context, i, shape);
      known = shape;
    }
    if (braid_context_set_input_shape(context, declared(session, i)->input, known) != 0)
      return 1;
  }
  return 0;
}

/* Lets each state be known for the step: those that are not are zeros. False and the error set
 * without memory. */
static bool begin(braid_session_t *session, const braid_context_t *context) {
  for (int64_t i = 0; i < session->count; ++i) {
    state *own = &session->states[i];
    if (own->buffer != NULL)
      continue;
    first_shape(session, context, i, own->shape);
    own->bytes = braid_tensor_bytes(input_of(session, i), own->shape);
    own->buffer = buffer_of(session, i, own->shape);
    own->is_fresh = true;
    if (own->buffer == NULL)
      return false;
    memset(own->buffer->data, 0, own->bytes);
  }
  return true;
}

/* The buffer to which the step writes the `i`-th state, of so many bytes: the state's own, or a new
 * one if that is too short or a fork has appended to it. NULL and the error set without memory. */
static braid_state_buffer *appended(const braid_session_t *session, int64_t i, size_t bytes) {
  const state *own = &session->states[i];
  braid_state_buffer *buffer = own->buffer;
  if (bytes >= own->bytes && braid_state_buffer_take(buffer, own->bytes, bytes)) {
    braid_state_buffer_retain(buffer);
    return buffer;
  }
  size_t ample = buffer->bytes;
  if (bytes > ample && __builtin_mul_overflow(ample, (size_t)2, &ample))
    ample = bytes;
  buffer = braid_state_buffer_create(bytes > ample ? bytes : ample, bytes);
  if (buffer == NULL)
    braid_set_error("out of memory: state '%s' takes %zu bytes", input_of(session, i)->name,
                    bytes > ample ? bytes : ample);
  return buffer;
}

/* The buffer to which the step writes the `i`-th state, which replaces the old one: the buffer of
 * another state with the same output, or a new one. NULL and the error set without memory. */
static braid_state_buffer *handed(const braid_session_t *session, int64_t i, size_t bytes) {
  for (int64_t other = 0; other < session->count; ++other)
    if (other != i && session->next[other].buffer != NULL &&
        declared(session, other)->output == declared(session, i)->output) {
      braid_state_buffer_retain(session->next[other].buffer);
      return session->next[other].buffer;
    }
  braid_state_buffer *buffer = braid_state_buffer_create(bytes, bytes);
  if (buffer == NULL)
    braid_set_error("out of memory: state '%s' takes %zu bytes", input_of(session, i)->name, bytes);
  return buffer;
}

/* Chooses the buffers of the next states, first of growing states, which others may share. False
 * and the error set where there is no memory, or the model does not run at these shapes. */
static bool choose_buffers(braid_session_t *session, braid_context_t *context) {
  for (int grows = 1; grows >= 0; --grows)
    for (int64_t i = 0; i < session->count; ++i) {
      if ((declared(session, i)->appended != 0) != grows)
        continue;
      const int64_t *shape = braid_context_output_shape(context, declared(session, i)->output);
      if (shape == NULL)
        return false;
      state *next = &session->next[i];
      copy_shape(input_of(session, i), next->shape, shape);
      next->bytes = braid_tensor_bytes(output_of(session, i), shape);
      next->buffer = grows ? appended(session, i, next->bytes) : handed(session, i, next->bytes);
      if (next->buffer == NULL)
        return false;
    }
  return true;
}

/* Makes the lists of buffers of the step: those of the caller, and the session's own. */
static bool take_inputs(braid_session_t *session, void *const *inputs) {
  const braid_model_v2 *descriptor = session->model->descriptor;
  if (descriptor->input_count > session->count && braid_is_null(inputs, "list of inputs"))
    return false;
  for (int64_t i = 0; inputs != NULL && i < descriptor->input_count; ++i)
    session->inputs[i] = inputs[i];
  for (int64_t i = 0; i < session->count; ++i)
    session->inputs[declared(session, i)->input] = session->states[i].buffer->data;
  return true;
}

static void take_outputs(braid_session_t *session, void *const *outputs) {
  const braid_model_v2 *descriptor = session->model->descriptor;
  for (int64_t i = 0; i < descriptor->output_count; ++i)
    session->outputs[i] = outputs != NULL ? outputs[i] : NULL;
  for (int64_t i = 0; i < session->count; ++i)
    session->outputs[declared(session, i)->output] = session->next[i].buffer->data;
}

/* Gives back what a step has taken that failed; the states are what they were before it. */
static void undo(braid_session_t *session) {
  for (int64_t i = 0; i < session->count; ++i) {
    state *own = &session->states[i], *next = &session->next[i];
    if (next->buffer != NULL && next->buffer == own->buffer)
      braid_state_buffer_take(own->buffer, next->bytes, own->bytes);
    braid_state_buffer_release(next->buffer);
    if (own->is_fresh) {
      braid_state_buffer_release(own->buffer);
      own->buffer = NULL;
    }
  }
}

/* Lets the next states be those of the session. */
static void go_on(braid_session_t *session) {
  for (int64_t i = 0; i < session->count; ++i) {
    state *own = &session->states[i], *next = &session->next[i];
    braid_state_buffer_release(own->buffer);
    own->buffer = next->buffer;
    own->bytes = next->bytes;
    copy_shape(input_of(session, i), own->shape, next->shape);
  }
}

int braid_session_step(braid_session_t *session, braid_context_t *context, void *const *inputs,
                       void *const *outputs) {
  if (!fits(session, context) || !is_whole(session))
    return 1;
  for (int64_t i = 0; i < session->count; ++i) {
    session->states[i].is_fresh = false;
    session->next[i].buffer = NULL;
  }
  if (begin(session, context) && braid_session_set_shapes(session, context) == 0 &&
      take_inputs(session, inputs) && braid_read_values(context, session->inputs) &&
      choose_buffers(session, context)) {
    take_outputs(session, outputs);
    if (braid_context_run(context, session->inputs, session->outputs) == 0) {
      go_on(session);
      return 0;
    }
  }
  undo(session);
  return 1;
}
