/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 16, SECTION_BYTES = 24, WEIGHTS_ALIGN = 4096 };

/* Read bytewise: the file is little-endian whatever the host is. */
static uint64_t read_le(const uint8_t *bytes, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

static bool map_file(const char *path, braid_container *container) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    braid_set_error("cannot open '%s': %s", path, strerror(errno));
    if (fd >= 0)
      close(fd);
    return false;
  }
  if (!S_ISREG(status.st_mode) || status.st_size < HEADER_BYTES) {
    braid_set_error("'%s' is not a braid artifact: shorter than its header", path);
    close(fd);
    return false;
  }
  void *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (base == MAP_FAILED) {
    braid_set_error("cannot map '%s': %s", path, strerror(reason));
    return false;
  }
  container->base = base;
  container->size = (size_t)status.st_size;
  return true;
}

static bool read_section(const char *path, const uint8_t *entry, braid_container *container) {
  uint64_t kind = read_le(entry, 4);
  uint64_t offset = read_le(entry + 8, 8);
  uint64_t size = read_le(entry + 16, 8);
  if (offset > container->size || size > container->size - offset) {
    braid_set_error("'%s' is truncated: a section ends past byte %zu, the end of the file", path,
                    container->size);
    return false;
  }
  if (kind == BRAID_SECTION_CODE) {
    container->code = container->base + offset;
    container->code_size = size;
  } else if (kind == BRAID_SECTION_WEIGHTS) {
    if (offset % WEIGHTS_ALIGN != 0) {
      braid_set_error("'%s' is malformed: its weights are not on a page boundary", path);
      return false;
    }
    container->weights = container->base + offset;
  }
  return true;
}

static bool read_sections(const char *path, braid_container *container) {
  const uint8_t *base = container->base;
  if (memcmp(base, "BRAIDART", 8) != 0) {
    braid_set_error("'%s' is not a braid artifact: wrong magic", path);
    return false;
  }
  uint32_t version = (uint32_t)read_le(base + 8, 4);
  if (version != BRAID_FORMAT_VERSION) {
    braid_set_error("'%s' has format version %u, this runtime reads version %u; compile it again",
                    path, version, BRAID_FORMAT_VERSION);
    return false;
  }
  uint64_t count = read_le(base + 12, 4);
  if (count > (container->size - HEADER_BYTES) / SECTION_BYTES) {
    braid_set_error("'%s' is truncated: its table of sections is not complete", path);
    return false;
  }
  for (uint64_t i = 0; i < count; ++i)
    if (!read_section(path, base + HEADER_BYTES + i * SECTION_BYTES, container))
      return false;
  if (container->code == NULL) {
    braid_set_error("'%s' holds no code", path);
    return false;
  }
  return true;
}

bool braid_container_open(const char *path, braid_container *container) {
  *container = (braid_container){0};
  if (!map_file(path, container))
    return false;
  if (!read_sections(path, container)) {
    braid_container_close(container);
    return false;
  }
  return true;
}

void braid_container_close(braid_container *container) {
  if (container->base != NULL)
    munmap((void *)(uintptr_t)container->base, container->size);
  *container = (braid_container){0};
}
