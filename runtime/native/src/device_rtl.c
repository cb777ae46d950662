/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The device `rtl`: circuits, simulated cycle by cycle. The code of each of its functions is a
 * shared object of kind `rtl` with the verilated circuit, and exports
 *
 *   const char braid_rtl_function[];   its name
 *   const double braid_rtl_clock;      cycles per second
 *   int64_t braid_rtl_launch(const void *const *inputs, void *const *outputs, const char *trace);
 *
 * the last returns the number of cycles, or -1 if the circuit did not end. `trace` is
 * the name of a file for the waveforms, or NULL: that of the environment variable BRAID_RTL_TRACE,
 * which a model with several functions finds with their names in front.
 */
#define _GNU_SOURCE
#include "device_host.h"
#include "devices.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_CHARS = 4096 };

typedef int64_t launch(const void *const *inputs, void *const *outputs, const char *trace);

typedef struct circuit {
  void *library;
  const char *name;
  const double *clock;
  launch *launch;
} circuit;

typedef struct program {
  const braid_model_v2 *model;
  int64_t count;
  circuit circuits[];
} program;

static void unload(void *device, void *loaded) {
  (void)device;
  program *own = loaded;
  for (int64_t i = 0; i < own->count; ++i)
    braid_unload_code(own->circuits[i].library);
  free(own);
}

static const circuit *find(const program *own, const char *function) {
  for (int64_t i = 0; i < own->count; ++i)
    if (strcmp(own->circuits[i].name, function) == 0)
      return &own->circuits[i];
  return NULL;
}

/* False, and nothing kept, where it is no circuit. */
static bool load_circuit(circuit *made, const braid_code_v1 *code) {
  made->library = braid_load_code(code->data, (size_t)code->bytes);
  if (made->library == NULL)
    return false;
  made->name = dlsym(made->library, "braid_rtl_function");
  made->clock = dlsym(made->library, "braid_rtl_clock");
  void *address = dlsym(made->library, "braid_rtl_launch");
  memcpy(&made->launch, &address, sizeof address);
  if (made->name != NULL && made->clock != NULL && made->launch != NULL)
    return true;
  braid_set_error("code of kind 'rtl' is no circuit that was made for this runtime");
  braid_unload_code(made->library);
  return false;
}

static void *load(void *device, const braid_device_model *model, char error[BRAID_DEVICE_ERROR]) {
  const braid_model_v2 *descriptor = model->model;
  const braid_device_v1 *own = &descriptor->devices[model->device];
  program *made = calloc(1, sizeof *made + (size_t)own->code_count * sizeof *made->circuits);
  if (made == NULL) {
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    return NULL;
  }
  made->model = descriptor;
  bool fits = true;
  for (int64_t i = 0; i < own->code_count && fits; ++i) {
    if (strcmp(own->codes[i].kind, "rtl") != 0)
      continue;
    fits = load_circuit(&made->circuits[made->count], &own->codes[i]);
    made->count += fits;
  }
  if (!fits)
    snprintf(error, BRAID_DEVICE_ERROR, "%s", braid_last_error());
  for (int64_t i = 0; i < descriptor->function_count && fits; ++i) {
    const braid_function_v1 *function = &descriptor->functions[i];
    fits = function->device != model->device || find(made, function->name) != NULL;
    if (!fits)
      snprintf(error, BRAID_DEVICE_ERROR, "there is no circuit of '@%.160s'", function->name);
  }
  if (fits)
    return made;
  unload(device, made);
  return NULL;
}

/* The file for the waveforms of a function; NULL where none is asked for, or its name is too long.
 */
static const char *trace_of(const program *own, const char *function, char path[PATH_CHARS]) {
  const char *asked = getenv("BRAID_RTL_TRACE");
  if (asked == NULL || *asked == '\0' || own->count == 1)
    return asked != NULL && *asked == '\0' ? NULL : asked;
  const char *slash = strrchr(asked, '/');
  int folder = slash == NULL ? 0 : (int)(slash + 1 - asked);
  int length = snprintf(path, PATH_CHARS, "%.*s%s.%s", folder, asked, function, asked + folder);
  return length < PATH_CHARS ? path : NULL;
}

static void compute(braid_submission *submission) {
  const program *own = submission->program;
  const char *name = own->model->functions[submission->function].name;
  const circuit *circuit = find(own, name);
  char path[PATH_CHARS];
  int64_t cycles = circuit->launch((const void *const *)submission->inputs, submission->outputs,
                                   trace_of(own, name, path));
  submission->status = cycles < 0;
  if (cycles < 0)
    snprintf(submission->error, BRAID_DEVICE_ERROR, "the circuit of '@%.160s' does not end", name);
  else
    submission->nanoseconds = (int64_t)(1e9 * (double)cycles / *circuit->clock);
}

static void *open_rtl(const char *name, char error[BRAID_DEVICE_ERROR]) {
  (void)name;
  return braid_host_open(compute, error);
}

const braid_device_plugin braid_plugin_rtl = BRAID_HOST_PLUGIN("rtl", open_rtl, load, unload, 1);
