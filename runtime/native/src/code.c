/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool write_all(int fd, const void *data, size_t size) {
  const char *next = data;
  while (size > 0) {
    ssize_t written = write(fd, next, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    next += written;
    size -= (size_t)written;
  }
  return true;
}

static void *open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL)
    braid_set_error("cannot load the model's code: %s", dlerror());
  return library;
}

/* The way without memfd_create: a file that is unlinked as soon as it is mapped. */
static void *load_through_temporary_file(const void *code, size_t size) {
  const char *directory = getenv("TMPDIR");
  char path[4096];
  snprintf(path, sizeof path, "%s/braid-XXXXXX", directory ? directory : "/tmp");
  int fd = mkstemp(path);
  if (fd < 0) {
    braid_set_error("cannot create '%s': %s", path, strerror(errno));
    return NULL;
  }
  void *library = NULL;
  if (write_all(fd, code, size))
    library = open_library(path);
  else
    braid_set_error("cannot write '%s': %s", path, strerror(errno));
  close(fd);
  unlink(path);
  return library;
}

void *braid_load_code(const void *code, size_t size) {
  int fd = memfd_create("braid-code", MFD_CLOEXEC);
  if (fd < 0)
    return load_through_temporary_file(code, size);
  void *library = NULL;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (!write_all(fd, code, size))
    braid_set_error("cannot copy the model's code: %s", strerror(errno));
  else if (access(path, R_OK) != 0) /* no /proc in this container */
    library = load_through_temporary_file(code, size);
  else
    library = open_library(path);
  close(fd);
  return library;
}
