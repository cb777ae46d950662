/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The artifact file: where its sections lie, and whether they are as they were written. */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_BYTES = 16, SECTION_BYTES = 32, DIGEST_BYTES = 8, WEIGHTS_ALIGN = 4096 };

const void *braid_map_file(const char *path, size_t *size) {
  if (path == NULL) {
    braid_set_error("the artifact's path is NULL");
    return NULL;
  }
  /* Without O_NONBLOCK, a FIFO would be waited for. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    braid_set_error("cannot open '%s': %s", path, strerror(errno));
    if (fd >= 0)
      close(fd);
    return NULL;
  }
  if (!S_ISREG(status.st_mode) || status.st_size < HEADER_BYTES) {
    braid_set_error(S_ISREG(status.st_mode)
                        ? "'%s' is not a braid artifact: shorter than its header"
                        : "'%s' is not a braid artifact: it is not a regular file",
                    path);
    close(fd);
    return NULL;
  }
  void *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int reason = errno;
  close(fd);
  if (base == MAP_FAILED) {
    braid_set_error("cannot map '%s': %s", path, strerror(reason));
    return NULL;
  }
  *size = (size_t)status.st_size;
  return base;
}

void braid_unmap_file(const void *data, size_t size) {
  if (data != NULL)
    munmap((void *)(uintptr_t)data, size);
}

bool braid_section_is_intact(const braid_section *section) {
  return braid_digest(section->data, section->size) == section->digest;
}

/* The header and the table of sections, behind which stands their digest. */
static bool check_header(const char *name, const uint8_t *data, size_t size, uint64_t *count) {
  if (size < HEADER_BYTES || memcmp(data, "BRAIDART", 8) != 0) {
    braid_set_error("'%s' is not a braid artifact: wrong magic", name);
    return false;
  }
  uint32_t version = (uint32_t)braid_read_le(data + 8, 4);
  if (version != BRAID_FORMAT_VERSION) {
    braid_set_error("'%s' has format version %u, this runtime reads version %u; compile it again",
                    name, version, BRAID_FORMAT_VERSION);
    return false;
  }
  *count = braid_read_le(data + 12, 4);
  if (size < HEADER_BYTES + DIGEST_BYTES ||
      *count > (size - HEADER_BYTES - DIGEST_BYTES) / SECTION_BYTES) {
    braid_set_error("'%s' is truncated: its table of sections is not complete", name);
    return false;
  }
  size_t end = HEADER_BYTES + *count * SECTION_BYTES;
  if (braid_digest(data, end) != braid_read_le(data + end, DIGEST_BYTES)) {
    braid_set_error("'%s' is damaged: the digest of its header is wrong", name);
    return false;
  }
  return true;
}

static bool read_section(const char *name, const uint8_t *data, size_t size, const uint8_t *entry,
                         braid_container *container) {
  uint64_t kind = braid_read_le(entry, 4);
  uint64_t offset = braid_read_le(entry + 8, 8);
  uint64_t bytes = braid_read_le(entry + 16, 8);
  if (offset > size || bytes > size - offset) {
    braid_set_error("'%s' is truncated: a section ends past byte %zu, the end of the file", name,
                    size);
    return false;
  }
  if (kind == 0 || kind >= BRAID_SECTION_KINDS)
    return true;
  braid_section *section = &container->sections[kind];
  if (section->data != NULL || (kind == BRAID_SECTION_WEIGHTS && offset % WEIGHTS_ALIGN != 0)) {
    braid_set_error(section->data != NULL
                        ? "'%s' is malformed: it has two sections of kind %d"
                        : "'%s' is malformed: its weights (kind %d) are not on a page boundary",
                    name, (int)kind);
    return false;
  }
  *section = (braid_section){data + offset, bytes, braid_read_le(entry + 24, 8)};
  return true;
}

static bool check_section(const char *name, const braid_section *section, const char *what) {
  if (section->data == NULL)
    braid_set_error("'%s' has no section with its %s", name, what);
  else if (!braid_section_is_intact(section))
    braid_set_error("'%s' is damaged: the digest of its %s is wrong", name, what);
  else
    return true;
  return false;
}

bool braid_container_read(const char *name, const void *data, size_t size,
                          braid_container *container) {
  const uint8_t *bytes = data;
  uint64_t count = 0;
  *container = (braid_container){0};
  if (!check_header(name, bytes, size, &count))
    return false;
  for (uint64_t i = 0; i < count; ++i)
    if (!read_section(name, bytes, size, bytes + HEADER_BYTES + i * SECTION_BYTES, container))
      return false;
  return check_section(name, &container->sections[BRAID_SECTION_MANIFEST], "manifest") &&
         check_section(name, &container->sections[BRAID_SECTION_CODE], "code");
}
