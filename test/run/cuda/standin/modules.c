/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Modules: the entries in their PTX, and the code that emulates them.
 */
#define _GNU_SOURCE
#include "standin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATIC_SHARED = 49152, MAX_GRID = 2147483647 };

/* ---- PTX ---- */

static int bytes_of(const char *type) {
  static const struct {
    const char *name;
    int bytes;
  } known[] = {{".u64", 8}, {".b64", 8}, {".s64", 8}, {".f64", 8}, {".u32", 4}, {".b32", 4},
               {".s32", 4}, {".f32", 4}, {".u16", 2}, {".b16", 2}, {".u8", 1},  {".b8", 1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (strncmp(type, known[i].name, strlen(known[i].name)) == 0)
      return known[i].bytes;
  return 0;
}

/* One of `.param .align 64 .b8 name[128]`, `.param .u64 .ptr .global .align 16 name`. */
static int parameter_bytes(const char *text, size_t length) {
  char line[256];
  snprintf(line, sizeof line, "%.*s", (int)length, text);
  const char *bracket = strchr(line, '[');
  int bytes = 0;
  for (const char *at = strstr(line, ".param") + 6; bytes == 0 && (at = strchr(at, '.')) != NULL;
       ++at)
    bytes = bytes_of(at);
  return bytes * (bracket != NULL ? atoi(bracket + 1) : 1);
}

static void read_parameters(entry *own, const char *from, const char *to) {
  const char *at = from;
  own->parameters = 0;
  while ((at = strstr(at, ".param")) != NULL && at < to) {
    const char *end = at + strcspn(at, ",)");
    if (own->parameters < MAX_ARGUMENTS)
      own->sizes[own->parameters++] = parameter_bytes(at, (size_t)(end - at));
    at = end;
  }
}

/* Bytes of shared memory that are declared between two positions; external arrays have none. */
static size_t shared_bytes(const char *from, const char *to) {
  size_t total = 0;
  for (const char *at = from; (at = strstr(at, ".shared .align")) != NULL && at < to; ++at) {
    const char *bracket = strchr(at, '['), *end = strchr(at, ';');
    const char *type = strstr(at, " .b");
    if (bracket != NULL && end != NULL && bracket < end && type != NULL)
      total += (size_t)atoi(bracket + 1) * (size_t)bytes_of(type + 1);
  }
  return total;
}

static void read_entry(entry *own, const char *at) {
  const char *open = strchr(at, '('), *close = strchr(at, ')'), *body = strchr(at, '{');
  const char *next = strstr(body, ".entry"), *end = next != NULL ? next : body + strlen(body);
  sscanf(at, ".entry %127[^( ]", own->name);
  read_parameters(own, open, close);
  const char *threads = strstr(close, ".reqntid");
  if (threads == NULL || threads > body)
    threads = strstr(close, ".maxntid");
  own->threads = threads != NULL && threads < body ? atoi(threads + 8) : 0;
  own->shared = shared_bytes(body, end);
}

static void find_code(entry *own) {
  char symbol[MAX_NAME + 16];
  snprintf(symbol, sizeof symbol, "%s.from", own->name);
  void *found = own->module->library != NULL ? dlsym(own->module->library, symbol) : NULL;
  memcpy(&own->body, &found, sizeof found);
}

static result read_ptx(module *own, const char *text) {
  int capability = 0, major = 8, minor = 0;
  const char *mine = getenv("STANDIN_CAPABILITY"), *target = strstr(text, ".target sm_");
  if (mine != NULL)
    sscanf(mine, "%d.%d", &major, &minor);
  if (target == NULL || strstr(text, ".version") == NULL ||
      strstr(text, ".address_size 64") == NULL)
    return wrong(INVALID_PTX, "it has no .version, .target and .address_size 64");
  sscanf(target, ".target sm_%d", &capability);
  if (capability > 10 * major + minor)
    return wrong(NO_BINARY, "PTX for sm_%d on a GPU of %d.%d", capability, major, minor);
  for (const char *at = text; (at = strstr(at, ".entry ")) != NULL; ++at)
    ++own->count;
  own->entries = calloc((size_t)own->count + 1, sizeof *own->entries);
  int number = 0;
  for (const char *at = text; (at = strstr(at, ".entry ")) != NULL; ++at) {
    own->entries[number].module = own;
    read_entry(&own->entries[number], at);
    find_code(&own->entries[number++]);
  }
  return OK;
}

static uint64_t digest_of(const char *text) {
  uint64_t digest = 0xcbf29ce484222325u; /* FNV-1a */
  for (; *text != '\0'; ++text)
    digest = (digest ^ (unsigned char)*text) * 0x100000001b3u;
  return digest;
}

static void load_library(module *own, const char *text) {
  const char *directory = getenv("BRAID_CUDA_EMULATED");
  char path[1024];
  if (directory == NULL)
    return;
  snprintf(path, sizeof path, "%s/%016llx.so", directory, (unsigned long long)digest_of(text));
  own->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (own->library == NULL)
    return;
  void *status = dlsym(own->library, "standin_status");
  memcpy(&own->status, &status, sizeof status);
}

/* ---- Calls ---- */

result cuModuleLoadDataEx(object **handle, const void *image, unsigned count, int *options,
                          void **values) {
  result code = begin("cuModuleLoadDataEx", "%p, %u", image, count);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  if (code == OK && (image == NULL || (count > 0 && (options == NULL || values == NULL))))
    code = wrong(INVALID_VALUE, "an argument is NULL");
  for (unsigned i = 0; code == OK && i < count; ++i)
    if (options[i] == 5 && values[i] != NULL)
      strcpy(values[i], "");
  if (code != OK)
    return finish(code);
  module *own = calloc(1, sizeof *own);
  if (memcmp(image, "\177ELF", 4) == 0)
    code = INVALID_IMAGE; /* the message of an older driver: the stand-in reads only PTX */
  if (code == OK) {
    load_library(own, image);
    code = read_ptx(own, image);
  }
  if (code != OK) {
    free_module(own);
    return finish(code);
  }
  *handle = add(MODULE);
  (*handle)->own = own;
  return finish(OK);
}

void free_module(module *own) {
  if (own->library != NULL)
    dlclose(own->library);
  own->library = NULL;
}

result cuModuleUnload(object *handle) {
  result code = begin("cuModuleUnload", "%p", (void *)handle);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT | NOT_IN_CAPTURE);
  object *found = code == OK ? find(MODULE, handle) : NULL;
  if (code == OK && found == NULL)
    code = INVALID_HANDLE;
  if (code != OK)
    return finish(code);
  if (!is_idle())
    wrong(0, "work is under way that may use it");
  run_all();
  for (object *at = objects; at != NULL; at = at->next)
    if (at->kind == FUNCTION && at->alive && ((entry *)at->own)->module == found->own)
      retire(at);
  free_module(found->own);
  retire(found);
  return finish(OK);
}

result cuModuleGetFunction(object **handle, object *from, const char *name) {
  result code = begin("cuModuleGetFunction", "%p, %s", (void *)from, name);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  object *found = code == OK ? find(MODULE, from) : NULL;
  if (code != OK || found == NULL)
    return finish(code != OK ? code : INVALID_HANDLE);
  module *own = found->own;
  for (int i = 0; i < own->count; ++i)
    if (strcmp(own->entries[i].name, name) == 0) {
      if (own->entries[i].object == NULL) {
        own->entries[i].object = add(FUNCTION);
        own->entries[i].object->own = &own->entries[i];
      }
      *handle = own->entries[i].object;
      return finish(OK);
    }
  return finish(wrong(NOT_FOUND, "the module has no entry '%s'", name));
}

static entry *entry_of(object *handle) {
  object *found = find(FUNCTION, handle);
  return found != NULL ? found->own : NULL;
}

result cuFuncGetAttribute(int *value, int attribute, object *handle) {
  result code = begin("cuFuncGetAttribute", "%d, %p", attribute, (void *)handle);
  entry *own = code == OK ? entry_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && attribute == 0)
    *value = own->threads > 0 ? own->threads : 1024;
  else if (code == OK && attribute == 1)
    *value = (int)own->shared;
  else if (code == OK)
    code = wrong(INVALID_VALUE, "attribute %d is unknown", attribute);
  return finish(code);
}

result cuFuncSetAttribute(object *handle, int attribute, int value) {
  result code = begin("cuFuncSetAttribute", "%p, %d, %d", (void *)handle, attribute, value);
  entry *own = code == OK ? entry_of(handle) : NULL;
  if (code == OK && own == NULL)
    code = INVALID_HANDLE;
  if (code == OK && attribute != 8)
    code = wrong(INVALID_VALUE, "attribute %d cannot be set", attribute);
  if (code == OK && (value < 0 || (size_t)value + own->shared > 232448))
    code = wrong(INVALID_VALUE, "no block has so much shared memory");
  if (code == OK)
    own->dynamic = (size_t)value;
  return finish(code);
}

/* Copies the arguments; those that are addresses must point to memory. The plugin puts NULL
 * behind the last one. */
static result take_arguments(work *item, const entry *own, void **arguments) {
  for (int i = 0; i < own->parameters; ++i) {
    if (arguments[i] == NULL)
      return wrong(INVALID_VALUE, "'%s' has %d parameters, argument %d is missing", own->name,
                   own->parameters, i);
    if ((size_t)own->sizes[i] > sizeof item->values[i])
      return wrong(INVALID_VALUE, "parameter %d of '%s' is too large", i, own->name);
    memcpy(item->values[i], arguments[i], (size_t)own->sizes[i]);
    if (inside(DEVICE_MEMORY, (void *)(uintptr_t)item->values[i][0], 0, "an argument") == NULL)
      return INVALID_VALUE;
  }
  if (arguments[own->parameters] != NULL)
    return wrong(INVALID_VALUE, "'%s' has %d parameters, there are more arguments", own->name,
                 own->parameters);
  return OK;
}

static result check_launch(const entry *own, const unsigned grid[3], const unsigned block[3],
                           unsigned shared) {
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || grid[0] > MAX_GRID || grid[1] > 65535 ||
      grid[2] > 65535)
    return wrong(INVALID_VALUE, "a grid of %u, %u, %u", grid[0], grid[1], grid[2]);
  if (threads == 0 || threads > 1024 || block[2] > 64)
    return wrong(INVALID_VALUE, "a block of %u, %u, %u", block[0], block[1], block[2]);
  if (own->threads > 0 && threads > (uint64_t)own->threads)
    return wrong(INVALID_VALUE, "'%s' is for %d threads", own->name, own->threads);
  if (own->shared + shared > STATIC_SHARED && own->dynamic < shared)
    return wrong(INVALID_VALUE, "%u bytes of shared memory, of which nothing was said before",
                 shared);
  return OK;
}

result cuLaunchKernel(object *handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      void *at, void **arguments, void **extra) {
  result code = begin("cuLaunchKernel", "%p, %u, %u, %u", (void *)handle, grid_x, block_x, shared);
  if (code == OK)
    code = allowed(NEEDS_CONTEXT);
  entry *own = code == OK ? entry_of(handle) : NULL;
  if (code == OK && (own == NULL || extra != NULL))
    code = own == NULL ? INVALID_HANDLE : wrong(INVALID_VALUE, "'extra' is not NULL");
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  if (code == OK)
    code = check_launch(own, grid, block, shared);
  work item = {
      .what = KERNEL, .entry = own, .blocks = grid_x, .threads = block_x, .shared = shared};
  if (code == OK)
    code = take_arguments(&item, own, arguments);
  if (code == OK)
    code = enqueue(at, item);
  return finish(code);
}

/* ---- Running ---- */

void run_kernel(const work *one) {
  void *arguments[MAX_ARGUMENTS];
  if (one->entry->body == NULL)
    return;
  for (int i = 0; i < one->entry->parameters; ++i)
    arguments[i] = (void *)(uintptr_t)one->values[i];
  open_memory();
  one->entry->body(arguments, one->blocks, one->threads);
  close_memory();
  char reason[256] = "";
  if (one->entry->module->status != NULL &&
      one->entry->module->status(reason, sizeof reason) != 0) {
    wrong(0, "kernel: %s", reason);
    sticky = LAUNCH_FAILED;
  }
}
