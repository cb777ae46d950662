/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The common part of all calls: the log, deliberate failures, handles, contexts.
 */
#define _GNU_SOURCE
#include "standin.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16 };

object *objects;
result sticky; /* after a kernel has failed, everything does */

static pthread_mutex_t lock;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE *log_file;
static const char *current = "";
static bool initialized;
static object *contexts[MAX_DEVICES];
static int retained[MAX_DEVICES];
static _Thread_local object *stack[DEPTH];
static _Thread_local int depth;
static _Thread_local char identity;
static pthread_key_t ends; /* of threads that have pushed a context */
static struct {
  char call[64];
  int left, code;
} planned;

static void end_thread(void *unused) {
  (void)unused;
  begin("# the end of a thread", " ");
  if (depth > 0)
    wrong(0, "%d contexts are pushed and never popped", depth);
  finish(OK);
}

static void set_up(void) {
  pthread_key_create(&ends, end_thread);
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &kind);
}

/* The environment is asked each time, so that a test changes it within its process. */
static void read_environment(void) {
  static char known_log[512], known_fail[128];
  const char *path = getenv("STANDIN_LOG"), *fail = getenv("STANDIN_FAIL");
  if (strcmp(path != NULL ? path : "", known_log) != 0) {
    snprintf(known_log, sizeof known_log, "%s", path != NULL ? path : "");
    if (log_file != NULL)
      fclose(log_file);
    log_file = path != NULL && *path != '\0' ? fopen(path, "a") : NULL;
  }
  if (strcmp(fail != NULL ? fail : "", known_fail) != 0) {
    snprintf(known_fail, sizeof known_fail, "%s", fail != NULL ? fail : "");
    planned.left = 0;
    sscanf(known_fail, "%63[^:]:%d:%d", planned.call, &planned.left, &planned.code);
  }
}

result begin(const char *call, const char *format, ...) {
  pthread_once(&once, set_up);
  pthread_mutex_lock(&lock);
  read_environment();
  current = call;
  if (log_file != NULL) {
    fprintf(log_file, "%s(", call);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(log_file, format, arguments);
    va_end(arguments);
    fprintf(log_file, ")\n");
    fflush(log_file);
  }
  if (planned.left > 0 && strcmp(planned.call, call) == 0 && --planned.left == 0) {
    if (log_file != NULL)
      fprintf(log_file, "# fails with %d\n", planned.code);
    return planned.code;
  }
  if (!initialized && strcmp(call, "cuInit") != 0)
    return wrong(NOT_INITIALIZED, "before cuInit");
  return OK;
}

result finish(result code) {
  some_work();
  if (log_file != NULL)
    fflush(log_file);
  pthread_mutex_unlock(&lock);
  return code;
}

result wrong(result code, const char *format, ...) {
  if (log_file != NULL) {
    fprintf(log_file, "VIOLATION %s: ", current);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(log_file, format, arguments);
    va_end(arguments);
    fprintf(log_file, "\n");
    fflush(log_file);
  }
  return code;
}

result allowed(int needs) {
  if (needs & NEEDS_CONTEXT && current_context() == NULL)
    return wrong(INVALID_CONTEXT, "no context is current on this thread");
  if (needs & NOT_IN_CAPTURE && capturing_here())
    return wrong(CAPTURE_UNSUPPORTED, "this thread captures a stream");
  return OK;
}

void *this_thread(void) { return &identity; }

/* ---- Handles ---- */

static const char *const names[] = {
    "context", "memory of the device", "pinned memory", "module", "function", "stream", "event",
    "graph",   "graph to launch"};

object *add(kind kind) {
  object *made = calloc(1, sizeof *made);
  made->kind = kind;
  made->alive = true;
  made->device = current_context() != NULL ? current_context()->device : 0;
  made->next = objects;
  return objects = made;
}

object *find(kind kind, const void *handle) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at == handle) {
      if (at->kind != kind)
        wrong(0, "a %s is given as a %s", names[at->kind], names[kind]);
      else if (!at->alive)
        wrong(0, "the %s is used after its end", names[kind]);
      else
        return at;
      return NULL;
    }
  wrong(0, "%p is no %s", handle, names[kind]);
  return NULL;
}

void retire(object *one) { one->alive = false; }

/* ---- Contexts ---- */

object *current_context(void) { return depth > 0 ? stack[depth - 1] : NULL; }

static int devices(void) {
  const char *count = getenv("STANDIN_DEVICES");
  return count != NULL ? atoi(count) : 1;
}

result cuInit(unsigned flags) {
  result code = begin("cuInit", "%u", flags);
  if (code == OK && flags != 0)
    code = wrong(INVALID_VALUE, "flags must be 0");
  initialized |= code == OK;
  return finish(code);
}

result cuDeviceGetCount(int *count) {
  result code = begin("cuDeviceGetCount", " ");
  if (code == OK)
    *count = devices();
  return finish(code);
}

result cuDeviceGet(int *device, int ordinal) {
  result code = begin("cuDeviceGet", "%d", ordinal);
  if (code == OK && (ordinal < 0 || ordinal >= devices()))
    code = wrong(INVALID_DEVICE, "there is no device %d", ordinal);
  if (code == OK)
    *device = ordinal;
  return finish(code);
}

result cuDeviceGetAttribute(int *value, int attribute, int device) {
  result code = begin("cuDeviceGetAttribute", "%d, %d", attribute, device);
  int major = 8, minor = 0;
  const char *capability = getenv("STANDIN_CAPABILITY");
  if (capability != NULL)
    sscanf(capability, "%d.%d", &major, &minor);
  if (code == OK && (device < 0 || device >= devices()))
    code = wrong(INVALID_DEVICE, "there is no device %d", device);
  if (code == OK)
    switch (attribute) {
    case 75:
      *value = major;
      break;
    case 76:
      *value = minor;
      break;
    case 97:
      *value = major >= 9 ? 232448 : minor == 0 ? 166912 : 101376;
      break;
    default:
      code = wrong(INVALID_VALUE, "attribute %d is unknown", attribute);
    }
  return finish(code);
}

result cuDevicePrimaryCtxRetain(object **context, int device) {
  result code = begin("cuDevicePrimaryCtxRetain", "%d", device);
  if (code == OK && (device < 0 || device >= devices()))
    code = wrong(INVALID_DEVICE, "there is no device %d", device);
  if (code != OK)
    return finish(code);
  if (retained[device]++ == 0) {
    contexts[device] = add(CONTEXT);
    contexts[device]->device = device;
  }
  *context = contexts[device];
  return finish(OK);
}

static void check_leaks(int device) {
  for (object *at = objects; at != NULL; at = at->next)
    if (at->alive && at->device == device && at->kind != CONTEXT && at->kind != FUNCTION)
      wrong(0, "leak: a %s of %zu bytes is left", names[at->kind], at->bytes);
}

result cuDevicePrimaryCtxRelease_v2(int device) {
  result code = begin("cuDevicePrimaryCtxRelease_v2", "%d", device);
  if (code != OK)
    return finish(code);
  if (device < 0 || device >= devices() || retained[device] == 0)
    return finish(wrong(INVALID_CONTEXT, "it is not retained"));
  if (--retained[device] == 0) {
    run_all();
    end_legacy_stream(device);
    check_leaks(device);
    retire(contexts[device]);
    contexts[device] = NULL;
    sticky = OK;
  }
  return finish(OK);
}

result cuCtxPushCurrent_v2(object *context) {
  result code = begin("cuCtxPushCurrent_v2", "%p", (void *)context);
  if (code == OK && find(CONTEXT, context) == NULL)
    code = INVALID_CONTEXT;
  if (code == OK && depth == DEPTH)
    code = wrong(INVALID_VALUE, "contexts are pushed and never popped");
  if (code == OK) {
    stack[depth++] = context;
    pthread_setspecific(ends, &identity);
  }
  return finish(code);
}

result cuCtxPopCurrent_v2(object **context) {
  result code = begin("cuCtxPopCurrent_v2", " ");
  if (code == OK && depth == 0)
    code = wrong(INVALID_CONTEXT, "no context was pushed on this thread");
  if (code == OK)
    *context = stack[--depth];
  return finish(code);
}

/* ---- Names ---- */

static const struct {
  result code;
  const char *name, *text;
} errors[] = {
    {OK, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted when capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture is invalid"},
};

static result name_of(result code, const char **text, bool whole) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].code == code) {
      *text = whole ? errors[i].text : errors[i].name;
      return OK;
    }
  *text = NULL;
  return INVALID_VALUE;
}

result cuGetErrorName(result code, const char **text) { return name_of(code, text, false); }

result cuGetErrorString(result code, const char **text) { return name_of(code, text, true); }
