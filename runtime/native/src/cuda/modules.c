/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The code of a model's kernels: which of several a GPU runs, and how it is loaded.
 */
#include "../message.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG = 2048 };

static const char PLAN_KIND[] = "gpu-plan";
static const char CUBIN[] = "cubin-sm_", PTX[] = "ptx-sm_";

/* The architecture that a code is for, such as 90 of "cubin-sm_90a"; 0 for another kind. */
static int architecture(const char *kind, const char *prefix, bool *only) {
  size_t length = strlen(prefix);
  if (strncmp(kind, prefix, length) != 0)
    return 0;
  char *end = NULL;
  long number = strtol(kind + length, &end, 10);
  *only = *end == 'a'; /* for this one and no later one */
  return (int)number;
}

/* How well a code fits the GPU: the higher the better, 0 where it cannot run. Machine code runs on
 * GPUs with the same major number and no lower minor one, PTX on everything newer. */
static int fitness(const cuda_gpu *gpu, const char *kind) {
  int own = 10 * gpu->major + gpu->minor;
  bool only = false;
  int made_for = architecture(kind, CUBIN, &only);
  if (made_for > 0)
    return made_for == own || (!only && made_for / 10 == gpu->major && made_for < own)
               ? 1000 + made_for
               : 0;
  made_for = architecture(kind, PTX, &only);
  return made_for > 0 && (made_for == own || (!only && made_for < own)) ? made_for : 0;
}

bool braid_cuda_best_code(const cuda_gpu *gpu, const braid_device_v1 *device,
                          const braid_code_v1 **best, char *error, size_t size) {
  int fits = 0;
  char text[160] = "";
  braid_message kinds = braid_message_in(text, sizeof text);
  for (int64_t i = 0; i < device->code_count; ++i) {
    const braid_code_v1 *code = &device->codes[i];
    bool only = false;
    if (architecture(code->kind, CUBIN, &only) == 0 && architecture(code->kind, PTX, &only) == 0)
      continue;
    int own = fitness(gpu, code->kind);
    if (own > fits) {
      *best = code;
      fits = own;
    }
    braid_append(&kinds, "%s%s", kinds.used > 0 ? ", " : "", code->kind);
  }
  if (*best != NULL || kinds.used == 0)
    return true;
  snprintf(error, size, "the GPU is sm_%d%d, and there is code for %s; compile it for sm_%d%d",
           gpu->major, gpu->minor, text, gpu->major, gpu->minor);
  return false;
}

/* Loads code, which for the driver's assembler must end in a zero. */
static bool load_image(const cuda_gpu *gpu, const braid_code_v1 *code, cuda_module *module,
                       char *error, size_t size) {
  char log[LOG] = "";
  int options[] = {CUDA_JIT_ERROR_LOG, CUDA_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  char *image = malloc((size_t)code->bytes + 1);
  if (image == NULL) {
    snprintf(error, size, "out of memory");
    return false;
  }
  memcpy(image, code->data, (size_t)code->bytes);
  image[code->bytes] = '\0';
  bool loaded = CUDA_TRY(gpu, error, size, module_load, module, image, 2, options, values);
  free(image);
  log[LOG - 1] = '\0';
  log[strcspn(log, "\n")] = '\0';
  braid_message message = braid_message_in(error, size);
  if (!loaded && *log != '\0')
    braid_append(&message, ": %s", log);
  if (!loaded)
    *module = NULL;
  return loaded;
}

/* The PTX that machine code was made of; NULL for other code. */
static const braid_code_v1 *source_of(const braid_device_v1 *device, const braid_code_v1 *code) {
  size_t length = sizeof CUBIN - 1;
  if (strncmp(code->kind, CUBIN, length) != 0)
    return NULL;
  for (int64_t i = 0; i < device->code_count; ++i) {
    const char *kind = device->codes[i].kind;
    if (strncmp(kind, PTX, sizeof PTX - 1) == 0 &&
        strcmp(kind + sizeof PTX - 1, code->kind + length) == 0)
      return &device->codes[i];
  }
  return NULL;
}

bool braid_cuda_load_module(const cuda_gpu *gpu, const braid_device_v1 *device,
                            const braid_code_v1 *code, cuda_module *module, char *error,
                            size_t size) {
  if (load_image(gpu, code, module, error, size))
    return true;
  const braid_code_v1 *source = source_of(device, code); /* for a driver that is older */
  return source != NULL && load_image(gpu, source, module, error, size);
}

const braid_code_v1 *braid_cuda_find_plan(const braid_device_v1 *device,
                                          const braid_code_v1 *code) {
  const char *architecture = code != NULL ? strstr(code->kind, "-sm_") : NULL;
  for (int64_t i = 0; i < device->code_count; ++i) {
    const char *kind = device->codes[i].kind;
    if (strncmp(kind, PLAN_KIND, strlen(PLAN_KIND)) == 0 &&
        (architecture == NULL || strcmp(kind + strlen(PLAN_KIND), architecture) == 0))
      return &device->codes[i];
  }
  return NULL;
}
