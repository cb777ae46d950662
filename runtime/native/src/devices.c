/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Finding plugins by name, opening each device once, and loading models onto it.
 */
#define _GNU_SOURCE
#include "devices.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_CHARS = 4096, ALIGN = 64 };

struct braid_open_device {
  braid_open_device *next;
  char *wanted; /* the name of the plugin that the model asks for, or that of `emulated` */
  char *name;
  bool busy; /* a thread opens or closes it; all below is that thread's */
  const braid_device_plugin *plugin;
  void *device;
  int64_t models;
};

/* A plugin of a shared object, never removed. These stay loaded: their threads may outlive a
 * device. */
typedef struct registered {
  struct registered *next;
  char *name;
  char *path;
} registered;

/* Of both lists, and held while the process forks. No code of a plugin runs under it: that takes as
 * long as it likes, and may have locks of its own that are held while the process forks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_busy = PTHREAD_COND_INITIALIZER;
static braid_open_device *open_devices;
static registered *registry;
static bool handles_forks;
static _Thread_local bool emulated;

void braid_device_emulate(int wanted) { emulated = wanted != 0; }

static bool may_emulate(void) {
  const char *always = getenv("BRAID_EMULATE");
  return emulated || (always != NULL && *always != '\0' && strcmp(always, "0") != 0);
}

/* ---- fork ---- */

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork_in_parent(void) { pthread_mutex_unlock(&lock); }

/* A thread that was opening or closing a device is not here: the device is not there either. Its
 * present content is kept. */
static void after_fork_in_child(void) {
  braid_open_device **at = &open_devices;
  while (*at != NULL)
    if ((*at)->busy)
      *at = (*at)->next;
    else
      at = &(*at)->next;
  pthread_cond_init(&none_busy, NULL);
  pthread_mutex_unlock(&lock);
}

/* With the lock. */
static bool handle_forks(void) {
  if (!handles_forks)
    handles_forks = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  return handles_forks;
}

/* ---- Plugins ---- */

static registered *find_registered(const char *name) {
  registered *at = registry;
  while (at != NULL && strcmp(at->name, name) != 0)
    at = at->next;
  return at;
}

static registered *add_registered(const char *name, const char *path) {
  registered *added = calloc(1, sizeof *added);
  char *own_name = strdup(name), *own_path = strdup(path);
  if (added == NULL || own_name == NULL || own_path == NULL) {
    free(added);
    free(own_name);
    free(own_path);
    braid_set_error("out of memory");
    return NULL;
  }
  *added = (registered){registry, own_name, own_path};
  return registry = added;
}

int braid_device_register(const char *name, const char *path) {
  if (name == NULL || path == NULL) {
    braid_set_error("the device plugin's %s is NULL", name == NULL ? "name" : "path");
    return 1;
  }
  int status = 0;
  pthread_mutex_lock(&lock);
  registered *known = find_registered(name);
  if (known == NULL)
    status = add_registered(name, path) == NULL;
  else if (strcmp(known->path, path) != 0) {
    braid_set_error("device plugin '%s' is '%s' already, not '%s'", name, known->path, path);
    status = 1;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

/* Loading a library again gives the same one, so that two threads may be here. */
static const braid_device_plugin *load_plugin(const registered *entry) {
  void *library = dlopen(entry->path, RTLD_NOW | RTLD_LOCAL);
  const braid_device_plugin *plugin = library != NULL ? dlsym(library, "braid_device_table") : NULL;
  if (plugin == NULL)
    braid_set_error("cannot load device plugin '%s': %s", entry->name, dlerror());
  else if (plugin->abi_version != BRAID_DEVICE_ABI_VERSION)
    braid_set_error("device plugin '%s' (%s) has ABI version %lld, this runtime has version %d",
                    entry->name, entry->path, (long long)plugin->abi_version,
                    BRAID_DEVICE_ABI_VERSION);
  else if (!plugin->open || !plugin->close || !plugin->load || !plugin->submit || !plugin->wait)
    braid_set_error("device plugin '%s' (%s) lacks open, close, load, submit or wait", entry->name,
                    entry->path);
  else if (!plugin->shares_memory && (!plugin->allocate || !plugin->release || !plugin->copy))
    braid_set_error("device plugin '%s' (%s) has memory of its own, and no way to use it",
                    entry->name, entry->path);
  else
    return plugin;
  if (library != NULL)
    dlclose(library);
  return NULL;
}

/* Looks for the plugin's file in the directories of BRAID_DEVICE_PATH. */
static registered *find_in_path(const char *name) {
  const char *at = getenv("BRAID_DEVICE_PATH");
  while (at != NULL && *at != '\0') {
    size_t length = strcspn(at, ":");
    char path[PATH_CHARS];
    int written = snprintf(path, sizeof path, "%.*s/libbraid_device_%s.so", (int)length, at, name);
    FILE *file = length > 0 && written < (int)sizeof path ? fopen(path, "rb") : NULL;
    if (file != NULL) {
      fclose(file);
      return add_registered(name, path);
    }
    at += length + (at[length] == ':');
  }
  return NULL;
}

/* Returns NULL, with the error set, if there is none. */
static const braid_device_plugin *find_plugin(const char *name) {
  static const braid_device_plugin *const own[] = {
      &braid_plugin_cpu, &braid_plugin_core,     &braid_plugin_npu_sim, &braid_plugin_gpu_emulated,
      &braid_plugin_rtl, &braid_plugin_emulated, &braid_plugin_cuda};
  for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
    if (strcmp(name, own[i]->name) == 0)
      return own[i];
  pthread_mutex_lock(&lock);
  registered *entry = find_registered(name);
  if (entry == NULL)
    entry = find_in_path(name);
  pthread_mutex_unlock(&lock);
  if (entry != NULL)
    return load_plugin(entry);
  braid_set_error("there is no device plugin '%s'", name);
  return NULL;
}

/* ---- Devices ---- */

static void free_device(braid_open_device *device) {
  free(device->wanted);
  free(device->name);
  free(device);
}

/* With the lock. */
static void remove_device(braid_open_device *device) {
  braid_open_device **at = &open_devices;
  while (*at != NULL && *at != device)
    at = &(*at)->next;
  if (*at != NULL)
    *at = device->next;
  pthread_cond_broadcast(&none_busy);
}

/* One that is not open, and busy; NULL where there is no memory. */
static braid_open_device *new_device(const char *wanted, const char *name) {
  braid_open_device *made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  made->wanted = strdup(wanted);
  made->name = strdup(name);
  made->busy = true;
  if (made->wanted != NULL && made->name != NULL)
    return made;
  free_device(made);
  return NULL;
}

/* Returns the open device of this name, with one more user; or a new and busy one, which the caller
 * must open; or NULL without memory. */
static braid_open_device *take_device(const char *wanted, const char *name, bool *is_new) {
  pthread_mutex_lock(&lock);
  braid_open_device *at = handle_forks() ? open_devices : NULL;
  while (at != NULL) {
    if (strcmp(at->wanted, wanted) != 0 || strcmp(at->name, name) != 0) {
      at = at->next;
    } else if (at->busy) {
      pthread_cond_wait(&none_busy, &lock);
      at = open_devices;
    } else {
      ++at->models;
      break;
    }
  }
  *is_new = at == NULL;
  if (*is_new && handles_forks && (at = new_device(wanted, name)) != NULL) {
    at->next = open_devices;
    open_devices = at;
  }
  pthread_mutex_unlock(&lock);
  return at;
}

/* NULL and the reason in `error` where that cannot be. */
static braid_open_device *open_device(const char *wanted, const char *name,
                                      char error[BRAID_DEVICE_ERROR]) {
  bool is_new = false;
  braid_open_device *device = take_device(wanted, name, &is_new);
  if (device == NULL)
    snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
  if (device == NULL || !is_new)
    return device;
  device->plugin = find_plugin(wanted);
  if (device->plugin == NULL)
    snprintf(error, BRAID_DEVICE_ERROR, "%s", braid_last_error());
  else
    device->device = device->plugin->open(name, error);
  bool opened = device->device != NULL;
  pthread_mutex_lock(&lock);
  if (opened) {
    device->busy = false;
    device->models = 1;
    pthread_cond_broadcast(&none_busy);
  } else {
    remove_device(device);
  }
  pthread_mutex_unlock(&lock);
  if (!opened)
    free_device(device);
  return opened ? device : NULL;
}

static void close_device(braid_open_device *device) {
  pthread_mutex_lock(&lock);
  bool last = --device->models == 0;
  device->busy = last;
  pthread_mutex_unlock(&lock);
  if (!last)
    return;
  device->plugin->close(device->device);
  pthread_mutex_lock(&lock);
  remove_device(device);
  pthread_mutex_unlock(&lock);
  free_device(device);
}

void *braid_device_allocate(const braid_loaded_device *device, int64_t bytes) {
  if (device->plugin->allocate != NULL)
    return device->plugin->allocate(device->device, bytes);
  void *memory = NULL;
  return posix_memalign(&memory, ALIGN, (size_t)bytes) == 0 ? memory : NULL;
}

void braid_device_release(const braid_loaded_device *device, void *memory) {
  if (device->plugin->release != NULL)
    device->plugin->release(device->device, memory);
  else
    free(memory);
}

void braid_device_no_room(const braid_loaded_device *loaded, const char *what, int64_t bytes) {
  const braid_device_v1 *device = &loaded->described.model->devices[loaded->described.device];
  const char *reason = loaded->plugin->why != NULL ? loaded->plugin->why(loaded->device) : "";
  braid_set_error("device '%s' has no room for %lld bytes of %s%s%s", device->name,
                  (long long)bytes, what, *reason != '\0' ? ": " : "", reason);
}

static bool has_host_code(const braid_model_v2 *model, int64_t device) {
  for (int64_t i = 0; i < model->function_count; ++i)
    if (model->functions[i].device == device && model->functions[i].run == NULL)
      return false;
  return true;
}

/* Opens device `index` of a model by its plugin or, where that cannot be, as asked on the host. */
static bool open_for(braid_loaded_device *loaded, const braid_model_v2 *model, int64_t index) {
  const braid_device_v1 *wanted = &model->devices[index];
  char error[BRAID_DEVICE_ERROR] = "";
  loaded->open = open_device(wanted->plugin, wanted->name, error);
  if (loaded->open == NULL && may_emulate() && has_host_code(model, index))
    loaded->open = open_device(braid_plugin_emulated.name, wanted->name, error);
  if (loaded->open == NULL) {
    braid_set_error("the model needs device '%s', which is missing: %s; %s", wanted->name, error,
                    has_host_code(model, index)
                        ? "BRAID_EMULATE=1 in the environment runs its functions on the host"
                        : "there is no code of its functions for the host");
    return false;
  }
  loaded->plugin = loaded->open->plugin;
  loaded->device = loaded->open->device;
  return true;
}

static bool place_weights(braid_loaded_device *loaded, const braid_section *weights) {
  const braid_device_v1 *device = &loaded->described.model->devices[loaded->described.device];
  if (device->weights_bytes == 0)
    return true;
  const char *data = (const char *)weights->data + device->weights_offset;
  loaded->described.weights = data;
  if (loaded->plugin->shares_memory)
    return true;
  loaded->own_weights = braid_device_allocate(loaded, device->weights_bytes);
  if (loaded->own_weights == NULL ||
      loaded->plugin->copy(loaded->device, loaded->own_weights, data, device->weights_bytes) != 0) {
    braid_device_no_room(loaded, "weights", device->weights_bytes);
    return false;
  }
  loaded->described.weights = loaded->own_weights;
  return true;
}

static bool load_functions(braid_loaded_device *loaded) {
  char error[BRAID_DEVICE_ERROR] = "";
  loaded->program = loaded->plugin->load(loaded->device, &loaded->described, error);
  if (loaded->program == NULL)
    braid_set_error("device '%s' cannot load its functions: %s",
                    loaded->described.model->devices[loaded->described.device].name, error);
  return loaded->program != NULL;
}

bool braid_devices_load(braid_model_t *model) {
  const braid_model_v2 *descriptor = model->descriptor;
  if (descriptor->device_count == 0)
    return true;
  model->devices = calloc((size_t)descriptor->device_count, sizeof *model->devices);
  if (model->devices == NULL) {
    braid_set_error("out of memory");
    return false;
  }
  for (int64_t i = 0; i < descriptor->device_count; ++i) {
    braid_loaded_device *loaded = &model->devices[i];
    loaded->described = (braid_device_model){descriptor, i, NULL};
    if (!open_for(loaded, descriptor, i) || !place_weights(loaded, &model->weights) ||
        !load_functions(loaded)) {
      braid_devices_unload(model);
      return false;
    }
  }
  return true;
}

void braid_devices_unload(braid_model_t *model) {
  for (int64_t i = 0; model->devices != NULL && i < model->descriptor->device_count; ++i) {
    braid_loaded_device *loaded = &model->devices[i];
    if (loaded->program != NULL && loaded->plugin->unload != NULL)
      loaded->plugin->unload(loaded->device, loaded->program);
    if (loaded->own_weights != NULL)
      braid_device_release(loaded, loaded->own_weights);
    if (loaded->open != NULL)
      close_device(loaded->open);
  }
  free(model->devices);
  model->devices = NULL;
}
