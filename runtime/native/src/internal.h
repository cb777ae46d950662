/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef BRAID_INTERNAL_H
#define BRAID_INTERNAL_H

#include "braid/runtime.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { BRAID_MAX_RANK = 64 };

/* Weights begin at a multiple of it, and each of those that are expanded: code may read them by
 * vectors that lie on their own size. */
enum { BRAID_WEIGHTS_ALIGN = 64 };

/* Elements of a vector that is expanded, before or after. */
enum { BRAID_MOST_EXPANDED = 64 };

enum { BRAID_SECTION_KINDS = BRAID_SECTION_WEIGHTS + 1 };

typedef struct braid_section {
  const void *data; /* NULL if there is none */
  size_t size;
  uint64_t digest;
} braid_section;

/* Where the sections of an artifact lie, by kind. */
typedef struct braid_container {
  braid_section sections[BRAID_SECTION_KINDS];
} braid_container;

typedef struct braid_loaded_device braid_loaded_device;
typedef struct braid_launches braid_launches;
struct braid_plans;
struct braid_phases;
struct braid_message;
struct braid_size_program;

struct braid_model {
  const braid_model_v2 *descriptor;
  braid_loaded_device *devices; /* as many as the descriptor has; NULL for none */
  struct braid_plans *plans;    /* NULL unless it is an open model */
  braid_section weights;
  struct braid_model **phases;      /* models of the phases; NULL if there are none */
  struct braid_model **specialized; /* models of specializations; NULL if there are none */
  bool is_part;                     /* whether weights and devices are those of a whole model */
  void *expanded;                   /* the weights that are expanded; NULL if there are none */
  atomic_int weights_state;         /* whether their digest was checked, and held */
  void *library;                    /* from dlopen; NULL when the code was already in the process */
  char *name;                       /* of the artifact, for messages; NULL without one */
  const void *file;                 /* mapped; NULL unless opened from a path */
  size_t file_bytes;
  atomic_int references; /* the opener and every context */
};

/* Records a printf-style message as the calling thread's last error. */
void braid_set_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Finds the sections of an artifact and checks all of it but the weights; false and the error set
 * where something is wrong. `name` is what messages call it. */
bool braid_container_read(const char *name, const void *data, size_t size,
                          braid_container *container);

bool braid_section_is_intact(const braid_section *section);

/* A little-endian number of up to 8 bytes, whatever the host is. */
uint64_t braid_read_le(const uint8_t *bytes, int count);

/* Whether this runtime can rely on a descriptor; false and the error set where it cannot. */
bool braid_check_descriptor(const braid_model_v2 *descriptor);

/* Whether a part of a model launches nothing, or functions of the whole model on its devices. */
bool braid_has_devices_of(const braid_model_v2 *part, const braid_model_v2 *whole);

/* Whether the weights are as they were written. The first call reads them all; false and the error
 * set where they are damaged. */
bool braid_weights_are_intact(braid_model_t *model);

/* Bytes of an integer that can be a size; 0 for another type. */
int64_t braid_value_size(int64_t dtype);

/* Bytes of an element that can be expanded; 0 for another type. */
int64_t braid_stored_size(int64_t dtype);

/* Makes the weights that a model expands; false and the error set where there is no memory. The
 * value to give to `free` is written to `expanded`. */
bool braid_expand_weights(const braid_model_v2 *descriptor, const void *weights, void **expanded);

/* Loads an ELF shared object that lies in memory; NULL and the error set on failure. */
void *braid_load_code(const void *code, size_t size);

/* Gives back what `braid_load_code` gave; NULL is allowed. */
void braid_unload_code(void *library);

void braid_model_retain(braid_model_t *model);

/* Creates the model of a phase or a specialization of `whole`, which outlives it; NULL and the
 * error set without memory. */
braid_model_t *braid_model_of_part(braid_model_t *whole, const braid_model_v2 *descriptor);

/* Reads the sizes of the model's dims off the inputs; false and the error set where these do not
 * agree about them. Sizes of dims that no input has are -1. */
bool braid_read_sizes(const braid_model_v2 *model, const int64_t *const *input_shapes,
                      int64_t *sizes);

/* Appends text such as `n=3,m=4`. */
void braid_append_sizes(const braid_model_v2 *model, const int64_t *sizes,
                        struct braid_message *message);

/* The size program of an open model. */
struct braid_size_program braid_sizes_of(const braid_model_v2 *model);

/* The variant for the sizes of the model's dims that the inputs have: the one with exactly these,
 * or else the smallest that they may be padded to. Writes the sizes to `sizes`. Returns NULL, with
 * the error set, if there is none. */
const braid_variant_v2 *braid_select_variant(const braid_model_v2 *model,
                                             const int64_t *const *input_shapes, int64_t *sizes);

/* `shape` with the sizes of the model's dims put in where the tensor has them. */
void braid_resize(const braid_tensor_v2 *tensor, const int64_t *shape, const int64_t *sizes,
                  int64_t *result);

/* Copies of inputs and outputs at the sizes of a variant; grows as needed. */
typedef struct braid_staging {
  void *memory; /* NULL at first; from malloc */
  size_t bytes;
} braid_staging;

/* Everything of one run of a variant. */
typedef struct braid_padded_run {
  const braid_model_v2 *model;
  const braid_variant_v2 *variant;
  const braid_env *env; /* has the actual shapes of inputs and outputs */
  void *const *inputs;
  void *const *outputs;
  const void *weights;
  void *arena;
} braid_padded_run;

/* Runs a variant on inputs that may be smaller than it takes: these are padded with zeros, and of
 * its outputs the part that they have is copied. Returns the status of its code, or -1 and the
 * failure recorded where there is no memory. */
int32_t braid_run_padded(const braid_padded_run *run, braid_staging *staging);

/* Bytes of a tensor of these sizes. */
size_t braid_tensor_bytes(const braid_tensor_v2 *tensor, const int64_t *shape);

/* Whether the bytes of a tensor can be counted, whatever its elements are. Sizes of 0 count as 1.
 */
bool braid_is_addressable(int64_t rank, const int64_t *shape);

bool braid_same_shape(int64_t rank, const int64_t *left, const int64_t *right);

/* Copies the common part of two row-major tensors of one kind at each index. */
void braid_copy_common(const braid_tensor_v2 *tensor, void *to, const int64_t *to_shape,
                       const void *from, const int64_t *from_shape);

/* The `parallel_for`, `run_inter_op`, `post` and `wait` of braid_env. */
void braid_parallel_for(const braid_env *env, braid_body body, void *ctx, int64_t n);
void braid_run_inter_op(const braid_env *env, braid_body body, void *ctx, int64_t n);
void braid_post(int64_t *counter, int64_t count);
void braid_wait(int64_t *counter, int64_t count);

/* How many CPUs this process may use, by affinity and by control groups. */
int64_t braid_available_cpus(void);

/* The limit of the control groups that the file `self` names, which are mounted at `root`;
 * INT64_MAX where they do not limit CPU time. */
int64_t braid_cpus_of_groups(const char *self, const char *root);

/* Whether there is a buffer for each input and output that has elements, at upper bounds; false and
 * the error set where one is missing. */
bool braid_check_ports(const braid_model_v2 *descriptor, void *const *inputs, void *const *outputs);

/* Runs function `number` on the calling thread; on failure it returns false, with the reason in
 * `error`. */
bool braid_context_run_function(braid_context_t *context, int64_t number, void *const *buffers,
                                char *error, size_t size);

/* The launches of a context; NULL for a model without devices. */
braid_launches *braid_launches_of(braid_context_t *context);

#endif /* BRAID_INTERNAL_H */
