/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Code from memory into this process, through the system's dynamic loader.
 *
 * The loader takes a library that it has for the one that it is asked for if either the names are
 * equal or the device and inode of the files are. Inodes are safe: that of a file stays taken as
 * long as the file is mapped. Names are not: numbers of descriptors return after a close, names of
 * temporary files after an unlink. So each load has a unique name, and the returned library is
 * asked for the name under which it was loaded.
 *
 * A fork waits for loads and unloads of other threads to end: it copies the loader's lock and lists
 * as they are at that moment, and who holds the lock then is not there in the child.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { THIS_MACHINE = EM_AARCH64 };
#endif

enum { TAG_WORDS = 3, TAG_CHARS = TAG_WORDS * 64 * 2, FILE_CHARS = 4096 };

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

/* A text that is unique in this process and may follow a directory without changing its meaning:
 * "/." for each bit that is set, "//" for the others. It holds where this copy of the runtime lies
 * (a program may hold several), how many loads that has made, and the time (another copy may have
 * lain there before). */
static void write_unique_tag(char *tag) {
  static atomic_uint_fast64_t loads;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t words[TAG_WORDS] = {(uint64_t)(uintptr_t)&loads, atomic_fetch_add(&loads, 1),
                               (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec};
  for (int i = 0; i < TAG_WORDS * 64; ++i) {
    *tag++ = '/';
    *tag++ = words[i / 64] >> (i % 64) & 1 ? '.' : '/';
  }
  *tag = '\0';
}

/* The loader's message without the name of the file, which users do not know. */
static const char *loader_message(const char *path) {
  const char *message = dlerror();
  size_t length = strlen(path);
  if (message == NULL)
    return "no message";
  return strncmp(message, path, length) == 0 && strncmp(message + length, ": ", 2) == 0
             ? message + length + 2
             : message;
}

/* ---- The system's loader, in one thread at a time, and in none while the process forks ---- */

static pthread_mutex_t loader_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool handles_forks;

static void before_fork(void) { pthread_mutex_lock(&loader_lock); }

static void after_fork(void) { pthread_mutex_unlock(&loader_lock); }

static void handle_forks(void) {
  handles_forks = pthread_atfork(before_fork, after_fork, after_fork) == 0;
}

static void *open_once(const char *path) {
  pthread_mutex_lock(&loader_lock);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  pthread_mutex_unlock(&loader_lock);
  return library;
}

void braid_unload_code(void *library) {
  if (library == NULL)
    return;
  pthread_mutex_lock(&loader_lock);
  dlclose(library);
  pthread_mutex_unlock(&loader_lock);
}

/* Loads `file` of `directory`. */
static void *open_library(const char *directory, const char *file) {
  char tag[TAG_CHARS + 1], path[FILE_CHARS + TAG_CHARS + 64];
  write_unique_tag(tag);
  snprintf(path, sizeof path, "%s%s/%s", directory, tag, file);
  void *library = open_once(path);
  if (library == NULL) {
    braid_set_error("cannot load the model's code: %s", loader_message(path));
    return NULL;
  }
  struct link_map *loaded = NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &loaded) != 0 || strcmp(loaded->l_name, path) != 0) {
    braid_set_error("cannot load the model's code: the system's loader gave another library");
    braid_unload_code(library);
    return NULL;
  }
  return library;
}

/* Loads the code through a file that is unlinked as soon as it is mapped. Only a process that is
 * killed before that leaves it behind. */
static void *load_through_file_in(const char *directory, const void *code, size_t size) {
  char path[FILE_CHARS];
  int length = snprintf(path, sizeof path, "%s/braid-XXXXXX", directory);
  errno = ENAMETOOLONG;
  int fd = length < (int)sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
  if (fd < 0) {
    braid_set_error("cannot load the model's code: no file can be made in '%.200s': %s", directory,
                    strerror(errno));
    return NULL;
  }
  void *library = NULL;
  struct statvfs place;
  if (!write_all(fd, code, size))
    braid_set_error("cannot load the model's code: no room for %zu bytes in '%.200s': %s", size,
                    directory, strerror(errno));
  else if (fstatvfs(fd, &place) == 0 && place.f_flag & ST_NOEXEC)
    braid_set_error("cannot load the model's code: files in '%.200s' cannot be executed; set "
                    "TMPDIR to a directory where they can",
                    directory);
  else
    library = open_library(directory, strrchr(path, '/') + 1);
  close(fd);
  unlink(path);
  return library;
}

/* The way without memfd_create or /proc. */
static void *load_through_temporary_file(const void *code, size_t size) {
  const char *wanted = getenv("TMPDIR");
  const char *directories[] = {wanted, "/tmp", "/var/tmp", "/dev/shm"};
  char first[256] = "";
  for (size_t i = 0; i < sizeof directories / sizeof *directories; ++i) {
    if (directories[i] == NULL || directories[i][0] == '\0')
      continue;
    void *library = load_through_file_in(directories[i], code, size);
    if (library != NULL)
      return library;
    if (first[0] == '\0')
      snprintf(first, sizeof first, "%s", braid_last_error());
  }
  braid_set_error("%s", first);
  return NULL;
}

/* The loader reports a missing file if the file is for another processor. */
static bool is_for_this_machine(const void *code, size_t size) {
  ElfW(Ehdr) header;
  if (size < sizeof header || memcmp(code, ELFMAG, SELFMAG) != 0) {
    braid_set_error("cannot load the model's code: it is not an ELF shared object");
    return false;
  }
  memcpy(&header, code, sizeof header);
  if (header.e_machine == THIS_MACHINE)
    return true;
  braid_set_error("cannot load the model's code: it is for another processor (ELF machine %d, "
                  "this one is %d)",
                  (int)header.e_machine, (int)THIS_MACHINE);
  return false;
}

void *braid_load_code(const void *code, size_t size) {
  if (!is_for_this_machine(code, size))
    return NULL;
  pthread_once(&fork_once, handle_forks);
  if (!handles_forks) {
    braid_set_error("out of memory");
    return NULL;
  }
  int fd = memfd_create("braid-code", MFD_CLOEXEC);
  if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM)
    return load_through_temporary_file(code, size);
  if (fd < 0) {
    braid_set_error("cannot load the model's code: %s", strerror(errno));
    return NULL;
  }
  const char *directory = "/proc/thread-self/fd";
  char file[16], path[64];
  snprintf(file, sizeof file, "%d", fd);
  snprintf(path, sizeof path, "%s/%s", directory, file);
  void *library = NULL;
  if (!write_all(fd, code, size))
    braid_set_error("cannot copy the model's code: %s", strerror(errno));
  else if (access(path, R_OK) != 0) /* no /proc in this container */
    library = load_through_temporary_file(code, size);
  else
    library = open_library(directory, file);
  close(fd);
  return library;
}
