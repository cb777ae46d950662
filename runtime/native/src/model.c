/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Code generators write these structs by offset. */
_Static_assert(sizeof(braid_tensor_v2) == 48, "braid_tensor_v2");
_Static_assert(sizeof(braid_model_v2) == 128, "braid_model_v2");
_Static_assert(sizeof(braid_dim_v2) == 16, "braid_dim_v2");
_Static_assert(sizeof(braid_variant_v2) == 24, "braid_variant_v2");
_Static_assert(offsetof(braid_model_v2, run) == 88, "braid_model_v2.run");
_Static_assert(offsetof(braid_env, output_shapes) == 56, "braid_env.output_shapes");
_Static_assert(offsetof(braid_env, post) == 64, "braid_env.post");
_Static_assert(offsetof(braid_env, wait) == 72, "braid_env.wait");

static bool check_features(const braid_model_v2 *descriptor) {
  for (int64_t i = 0; i < descriptor->feature_count; ++i) {
    const char *feature = descriptor->features[i];
    int supported = braid_cpu_supports(feature);
    if (supported == 1)
      continue;
    braid_set_error(supported == 0
                        ? "the model needs the CPU feature '%s', which this CPU does not have"
                        : "the model needs the CPU feature '%s', which this runtime does not know",
                    feature);
    return false;
  }
  return true;
}

static bool has_small_ranks(const braid_tensor_v2 *tensors, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (tensors[i].rank < 0 || tensors[i].rank > BRAID_MAX_RANK)
      return false;
  return true;
}

static bool check_descriptor(const braid_model_v2 *descriptor) {
  if (descriptor == NULL) {
    braid_set_error("the model's code does not export 'braid_model'");
    return false;
  }
  if (descriptor->abi_version < BRAID_OLDEST_ABI_VERSION ||
      descriptor->abi_version > BRAID_ABI_VERSION) {
    braid_set_error("the model's code has ABI version %lld, this runtime runs versions %d to %d; "
                    "compile it again",
                    (long long)descriptor->abi_version, BRAID_OLDEST_ABI_VERSION,
                    BRAID_ABI_VERSION);
    return false;
  }
  int64_t align = descriptor->arena_align;
  if ((descriptor->run == NULL) == (descriptor->variant_count <= 0) ||
      descriptor->arena_bytes < 0 || align < 0 || (align & (align - 1)) != 0 ||
      !has_small_ranks(descriptor->inputs, descriptor->input_count) ||
      !has_small_ranks(descriptor->outputs, descriptor->output_count)) {
    braid_set_error("the model's descriptor is malformed");
    return false;
  }
  return check_features(descriptor);
}

static braid_model_t *create_model(const braid_model_v2 *descriptor, const void *weights,
                                   void *library) {
  if (!check_descriptor(descriptor))
    return NULL;
  braid_model_t *model = calloc(1, sizeof *model);
  if (model == NULL) {
    braid_set_error("out of memory");
    return NULL;
  }
  model->descriptor = descriptor;
  model->weights = weights;
  model->library = library;
  atomic_init(&model->references, 1);
  return model;
}

braid_model_t *braid_model_from_descriptor(const braid_model_v2 *descriptor, const void *weights) {
  return create_model(descriptor, weights, NULL);
}

braid_model_t *braid_model_from_memory(const void *code, size_t size, const void *weights) {
  void *library = braid_load_code(code, size);
  if (library == NULL)
    return NULL;
  braid_model_t *model = create_model(dlsym(library, "braid_model"), weights, library);
  if (model == NULL)
    dlclose(library);
  return model;
}

braid_model_t *braid_model_open(const char *path) {
  braid_container container;
  if (!braid_container_open(path, &container))
    return NULL;
  braid_model_t *model =
      braid_model_from_memory(container.code, container.code_size, container.weights);
  if (model == NULL)
    braid_container_close(&container);
  else
    model->container = container;
  return model;
}

const braid_model_v2 *braid_model_describe(const braid_model_t *model) { return model->descriptor; }

void braid_model_retain(braid_model_t *model) { atomic_fetch_add(&model->references, 1); }

void braid_model_close(braid_model_t *model) {
  if (model == NULL || atomic_fetch_sub(&model->references, 1) > 1)
    return;
  if (model->library != NULL)
    dlclose(model->library);
  braid_container_close(&model->container);
  free(model);
}
