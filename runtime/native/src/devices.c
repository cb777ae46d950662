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

enum { PATH_CHARS = 4096 };

struct braid_open_device {
  braid_open_device *next;
  const braid_device_plugin *plugin;
  char *name;
  void *device;
  int64_t models;
};

/* A plugin of a shared object. These stay loaded: their threads may outlive a device. */
typedef struct registered {
  struct registered *next;
  char *name;
  char *path;
  const braid_device_plugin *plugin; /* NULL until it is needed */
} registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static braid_open_device *open_devices;
static registered *registry;
static _Thread_local bool emulated;

void braid_device_emulate(int wanted) { emulated = wanted != 0; }

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
  *added = (registered){registry, own_name, own_path, NULL};
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

static const braid_device_plugin *load_plugin(registered *entry) {
  if (entry->plugin != NULL)
    return entry->plugin;
  void *library = dlopen(entry->path, RTLD_NOW | RTLD_LOCAL);
  const braid_device_plugin *plugin = library != NULL ? dlsym(library, "braid_device_table") : NULL;
  if (plugin == NULL)
    braid_set_error("cannot load device plugin '%s': %s", entry->name, dlerror());
  else if (plugin->abi_version != BRAID_DEVICE_ABI_VERSION)
    braid_set_error("device plugin '%s' (%s) has ABI version %lld, this runtime has version %d",
                    entry->name, entry->path, (long long)plugin->abi_version,
                    BRAID_DEVICE_ABI_VERSION);
  else
    return entry->plugin = plugin;
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

/* With the lock. NULL and the error set where there is none. */
static const braid_device_plugin *find_plugin(const char *name) {
  if (strcmp(name, braid_plugin_cpu.name) == 0)
    return &braid_plugin_cpu;
  if (strcmp(name, braid_plugin_npu_sim.name) == 0)
    return &braid_plugin_npu_sim;
  registered *entry = find_registered(name);
  if (entry == NULL)
    entry = find_in_path(name);
  if (entry != NULL)
    return load_plugin(entry);
  braid_set_error("there is no device plugin '%s'", name);
  return NULL;
}

/* ---- Devices ---- */

/* With the lock. */
static braid_open_device *open_device(const braid_device_plugin *plugin, const char *name,
                                      char error[BRAID_DEVICE_ERROR]) {
  for (braid_open_device *at = open_devices; at != NULL; at = at->next)
    if (at->plugin == plugin && strcmp(at->name, name) == 0) {
      ++at->models;
      return at;
    }
  braid_open_device *opened = calloc(1, sizeof *opened);
  char *own_name = strdup(name);
  void *device = opened != NULL && own_name != NULL ? plugin->open(name, error) : NULL;
  if (device == NULL) {
    if (opened == NULL || own_name == NULL)
      snprintf(error, BRAID_DEVICE_ERROR, "out of memory");
    free(opened);
    free(own_name);
    return NULL;
  }
  *opened = (braid_open_device){open_devices, plugin, own_name, device, 1};
  return open_devices = opened;
}

static void close_device(braid_open_device *device) {
  pthread_mutex_lock(&lock);
  if (--device->models == 0) {
    braid_open_device **at = &open_devices;
    while (*at != device)
      at = &(*at)->next;
    *at = device->next;
    device->plugin->close(device->device);
    free(device->name);
    free(device);
  }
  pthread_mutex_unlock(&lock);
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
  pthread_mutex_lock(&lock);
  const braid_device_plugin *plugin = find_plugin(wanted->plugin);
  if (plugin != NULL)
    loaded->open = open_device(plugin, wanted->name, error);
  else
    snprintf(error, sizeof error, "%s", braid_last_error());
  if (loaded->open == NULL && emulated && has_host_code(model, index)) {
    plugin = &braid_plugin_cpu;
    loaded->open = open_device(plugin, wanted->name, error);
  }
  pthread_mutex_unlock(&lock);
  if (loaded->open == NULL) {
    braid_set_error("the model needs device '%s', which is missing: %s; %s", wanted->name, error,
                    has_host_code(model, index) ? "--emulate runs its functions on the host"
                                                : "there is no code of its functions for the host");
    return false;
  }
  loaded->plugin = plugin;
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
  loaded->own_weights = loaded->plugin->allocate(loaded->device, device->weights_bytes);
  if (loaded->own_weights == NULL ||
      loaded->plugin->copy(loaded->device, loaded->own_weights, data, device->weights_bytes) != 0) {
    braid_set_error("device '%s' has no room for %lld bytes of weights", device->name,
                    (long long)device->weights_bytes);
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
    if (loaded->program != NULL)
      loaded->plugin->unload(loaded->device, loaded->program);
    if (loaded->own_weights != NULL)
      loaded->plugin->release(loaded->device, loaded->own_weights);
    if (loaded->open != NULL)
      close_device(loaded->open);
  }
  free(model->devices);
  model->devices = NULL;
}
