/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Finding NVIDIA's driver.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAY_OUT "the target gpu-emulated runs the same kernels on the CPU"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuda_driver driver;
static bool loaded;

static const struct {
  const char *symbol;
  size_t offset;
} symbols[] = {
#define ENTRY(NAME, SYMBOL, PARAMETERS) {SYMBOL, offsetof(cuda_driver, NAME)},
    BRAID_CUDA_CALLS(ENTRY)
#undef ENTRY
};

static bool find_symbols(void *library, const char *path, char *error, size_t size) {
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; ++i) {
    void *found = dlsym(library, symbols[i].symbol);
    if (found == NULL) {
      snprintf(error, size,
               "the CUDA driver '%s' has no %s, which braid needs of CUDA 12.0 and newer", path,
               symbols[i].symbol);
      return false;
    }
    memcpy((char *)&driver + symbols[i].offset, &found, sizeof found);
  }
  return true;
}

/* With the lock. The library stays loaded: the driver has threads of its own. */
static bool load(char *error, size_t size) {
  const char *named = getenv("BRAID_CUDA_LIBRARY");
  bool given = named != NULL && *named != '\0';
  const char *path = given ? named : "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL && given)
    snprintf(error, size, "BRAID_CUDA_LIBRARY names no CUDA driver: %s", dlerror());
  else if (library == NULL)
    snprintf(error, size, "there is no CUDA driver (%s) on this machine; " WAY_OUT, path);
  if (library == NULL)
    return false;
  if (find_symbols(library, path, error, size))
    return true;
  dlclose(library);
  return false;
}

const cuda_driver *braid_cuda_load_driver(char *error, size_t size) {
  pthread_mutex_lock(&lock);
  if (!loaded)
    loaded = load(error, size);
  bool there = loaded;
  pthread_mutex_unlock(&lock);
  return there ? &driver : NULL;
}

void braid_cuda_describe(const cuda_driver *cuda, const char *call, cuda_result result, char *error,
                         size_t size) {
  const char *name = NULL, *text = NULL;
  if (cuda->get_error_name(result, &name) != CUDA_OK || name == NULL)
    snprintf(error, size, "%s failed with %d", call, result);
  else if (cuda->get_error_string(result, &text) != CUDA_OK || text == NULL)
    snprintf(error, size, "%s: %s", call, name);
  else
    snprintf(error, size, "%s: %s (%s)", call, name, text);
}
