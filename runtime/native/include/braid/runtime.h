/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * braid's native runtime: loads compiled models and runs them. C11, no LLVM, no Python.
 *
 * Two interfaces live here:
 *   1. what a *program* calls to load and run a model (`braid_model_open`, …);
 *   2. what *compiled code* must export and may call (`braid_model_v2`, `braid_env`).
 */
#ifndef BRAID_RUNTIME_H
#define BRAID_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The artifact file (`.braid`) ----------------------------------------------------------
 *
 * Little-endian. A header, a table of sections and the digest of both, then the sections:
 *
 *   offset  size  field
 *        0     8  magic "BRAIDART"
 *        8     4  u32 format version (BRAID_FORMAT_VERSION)
 *       12     4  u32 number of sections
 *       16  32*n  sections: { u32 kind, u32 flags, u64 offset, u64 size, u64 digest }
 *  16+32*n     8  u64 digest of all bytes before it
 *
 * A digest is that of `braid_digest`. It protects from damage, not from an attacker, who can write
 * a new one: an artifact is native code and runs with the rights of whoever loads it.
 *
 * Offsets count from the start of the file. Flags are 0. A kind occurs at most once; readers skip
 * kinds that they do not know. WEIGHTS starts on a 4096-byte boundary, so that it is used where it
 * is mapped, and every tensor in it on a 64-byte boundary.
 */
#define BRAID_FORMAT_VERSION 2u

enum braid_section_kind {
  BRAID_SECTION_MANIFEST = 1, /* JSON (UTF-8), for people and for Python; C does not read it */
  BRAID_SECTION_CODE = 2,     /* an ELF shared object that exports `braid_model` */
  BRAID_SECTION_WEIGHTS = 3,  /* raw tensors; the manifest holds the index */
  BRAID_SECTION_DEVICES = 4,  /* code of other devices than the host that CODE does not hold */
};

/* ---- What compiled code exports and may call -----------------------------------------------
 *
 * A code object exports one data symbol, `const braid_model_v2 braid_model`. All fields are
 * pointers or i64, so that the descriptor is a plain LLVM constant with natural layout:
 *
 *   %braid.tensor  = type { ptr, i64, i64, ptr, ptr, ptr }
 *   %braid.dim     = type { ptr, i64 }
 *   %braid.variant = type { ptr, ptr, ptr }
 *   %braid.model   = type { i64, i64, ptr, i64, ptr, i64, i64, i64, ptr, i64, ptr, ptr,
 *                           i64, ptr, i64, ptr, i64, i64, ptr, i64, ptr, i64, i64, ptr,
 *                           i64, ptr, ptr, i64, i64, ptr, ptr }
 *   @braid_model   = constant %braid.model { … }
 *
 * Everything else that the code needs it gets through `braid_env`: its only undefined symbols
 * are those of libc and libm.
 */
#define BRAID_ABI_VERSION 17

/* The oldest version of code that this runtime runs. Code without profile counters needs no more.
 */
#define BRAID_ABI_OLDEST 13

typedef struct braid_env braid_env;

/* Runs iterations [begin, end) of a parallel loop. */
typedef void (*braid_body)(void *ctx, int64_t begin, int64_t end);

/* Services and per-run facts for compiled code. Valid for the duration of one `run`. */
struct braid_env {
  int64_t threads; /* offset 0: how many threads parallel_for uses, >= 1 */
  /* offset 8: calls `body` on disjoint ranges that cover [0, n), several on each thread and in any
   * order; returns when all are done. No range may wait for another */
  void (*parallel_for)(const braid_env *env, braid_body body, void *ctx, int64_t n);
  /* offset 16: monotonic clock, nanoseconds */
  uint64_t (*now)(void);
  /* offset 24: records why the run fails (the text is copied), and ends loops; the caller then
   * returns nonzero */
  void (*fail)(const braid_env *env, const char *message);
  /* offset 32: executions per profile counter (`counter_count` of them), never reset by a run */
  uint64_t *counts;
  /* offset 40: nanoseconds per profile counter, likewise */
  uint64_t *times;
  /* offset 48: actual sizes of each input's dims */
  const int64_t *const *input_shapes;
  /* offset 56: actual sizes of each output's dims; for an open model by `output_shapes`; else
   * preset to the declared upper bounds, and the code overwrites open ones
   */
  int64_t *const *output_shapes;
  /* Inter-op streams, lists of kernels that run side by side. To wait for each other, each has a
   * counter at the start of a cache line of its own, all zero when the streams start;
   * what else is on the line is for the runtime. The counter only grows. */
  /* offset 64: lets everything before it be seen by whoever waits for `count` */
  void (*post)(int64_t *counter, int64_t count);
  /* offset 72: returns once the counter is at least `count` */
  void (*wait)(int64_t *counter, int64_t count);
  /* offset 80: calls `body` on disjoint ranges of streams that cover [0, n), each once and on a
   * thread of its own, side by side; returns when all are done. With fewer threads than streams a
   * range has several streams, which must not wait for later kernels of the range */
  void (*run_inter_op)(const braid_env *env, braid_body body, void *ctx, int64_t n);
  /* For models with devices, on the thread that runs the model; NULL elsewhere. */
  /* offset 88: starts a function of the model's on its device, once the launches with the tickets
   * `after` have ended, and returns the ticket of this launch. `buffers` are its inputs and then
   * its outputs; the lists are copied, what the buffers hold is used until the launch has ended */
  int64_t (*submit)(const braid_env *env, int64_t function, void *const *buffers,
                    const int64_t *after, int64_t after_count);
  /* offset 96: returns when the launch with this ticket has ended. If it failed, the run ends: the
   * call does not return */
  void (*finish)(const braid_env *env, int64_t ticket);
  /* offset 104: whether the run is to end; checked before each iteration of a loop, which then
   * ends. Later ops compute with undefined values, and the run fails */
  int32_t (*is_stopped)(const braid_env *env);
  /* offset 112: the runtime's, for `is_stopped` */
  struct braid_watch *watch;
  /* offset 120: of an open model the results of its size program, and then the offset in the arena
   * of each of its buffers, a multiple of `arena_align`; NULL for another */
  const int64_t *sizes;
  /* offset 128: the model's `expanded_bytes`, on a multiple of 64; NULL if there are none */
  const void *expanded;
  /* For code with profile counters, since version 14. */
  /* offset 136: the clock at the beginning of a kernel that does not directly follow another one */
  uint64_t (*clock)(const braid_env *env);
  /* offset 144: a kernel that began at `begin` has ended: adds to `counts` and `times` of
   * `counter`, and returns the clock */
  uint64_t (*record)(const braid_env *env, int64_t counter, uint64_t begin);
  /* offset 152: the runtime's, for `clock` and `record` */
  struct braid_observer *observer;
};

/* An input or output: row-major and dense. 48 bytes. */
typedef struct braid_tensor_v2 {
  const char *name;     /* offset 0 */
  int64_t dtype;        /* offset 8: as numbered by ONNX's TensorProto.DataType (f32 = 1, …) */
  int64_t rank;         /* offset 16 */
  const int64_t *shape; /* offset 24: `rank` sizes, -1 where the dim is open */
  const int64_t *bound; /* offset 32: upper bound of each dim (the size itself where not open); for
                           an open model INT64_MAX without a bound */
  const int64_t *dims; /* offset 40: the index of each dim in the model's `dims`, or -1; may be NULL
                          if the model has none */
} braid_tensor_v2;

/* A dim that several inputs and outputs share, such as the batch. 16 bytes. */
typedef struct braid_dim_v2 {
  const char *name;    /* offset 0 */
  int64_t padded_from; /* offset 8: the least size that may be padded up to that of a variant,
                        * whose first results are then the same; 0 where none may */
} braid_dim_v2;

/* Runs code. It gets one pointer per input and output (aligned to their element only), the WEIGHTS
 * section, and an arena of `arena_bytes` that is aligned to `arena_align` and holds arbitrary
 * bytes; it returns 0 on success. The weights of a model opened from a file are aligned to 4096
 * bytes. */
typedef int32_t (*braid_run)(const braid_env *env, void *const *inputs, void *const *outputs,
                             const void *weights, void *arena);

/* Code for one size of each of the model's `dims`. 24 bytes. */
typedef struct braid_variant_v2 {
  const int64_t *sizes;                /* offset 0: `dim_count` sizes */
  const int64_t *const *output_shapes; /* offset 8: `rank` sizes per output */
  braid_run run;                       /* offset 16 */
} braid_variant_v2;

/* Code for a device, of another kind than the host's. 24 bytes. */
typedef struct braid_code_v1 {
  const char *kind; /* offset 0: such as "ptx" */
  const void *data; /* offset 8 */
  int64_t bytes;    /* offset 16 */
} braid_code_v1;

/* A device that functions of the model run on. 48 bytes. */
typedef struct braid_device_v1 {
  const char *name;           /* offset 0: such as "npu:0" */
  const char *plugin;         /* offset 8: who runs it; see braid/device.h */
  int64_t weights_offset;     /* offset 16: of its own in WEIGHTS, a multiple of 4096 */
  int64_t weights_bytes;      /* offset 24 */
  int64_t code_count;         /* offset 32 */
  const braid_code_v1 *codes; /* offset 40 */
} braid_device_v1;

/* A function that the model launches. 72 bytes. */
typedef struct braid_function_v1 {
  const char *name;     /* offset 0 */
  int64_t device;       /* offset 8: which of the model's devices runs it */
  int64_t input_count;  /* offset 16 */
  int64_t output_count; /* offset 24 */
  const int64_t *bytes; /* offset 32: of each input, then of each output */
  int64_t arena_bytes;  /* offset 40: aligned as the model's arena */
  int64_t nanoseconds;  /* offset 48: of one launch by a simulation of the device; 0 without one */
  braid_run run;        /* offset 56: code of the host that computes the same, with the device's own
                         * weights; NULL if there is none */
  int64_t on_caller; /* offset 64: not 0 for a part of the host's program that launches others: it
                        runs on the launching thread, with the services of the caller */
} braid_function_v1;

/* A launch of the model's as a stage of a stream. Buffers are numbered: first the model's inputs,
 * then its outputs, then its channels. 48 bytes. */
typedef struct braid_stage_v1 {
  int64_t function;        /* offset 0 */
  const int64_t *inputs;   /* offset 8: the buffer of each input of the function, which an earlier
                            * stage has written unless it is an input of the model */
  const int64_t *outputs;  /* offset 16: the buffer of each output, an output of the model or a
                            * channel, which no other stage writes */
  int64_t nanoseconds;     /* offset 24: that it is expected to take */
  int64_t replica_count;   /* offset 32 */
  const int64_t *replicas; /* offset 40: functions that do the same on other devices: whichever of
                            * these devices and its own is free begins with the next request */
} braid_stage_v1;

/* A channel from one stage to others, with as many buffers as there are slots. 16 bytes. */
typedef struct braid_channel_v1 {
  int64_t bytes; /* offset 0 */
  int64_t slots; /* offset 8: at least 1 */
} braid_channel_v1;

/* ---- Open models: one code for all sizes of the model's dims.
 *
 * A size program computes sizes from those of the dims, which are its symbols in this order. Its
 * steps have four words each, an operation and a, b and c, as `support/sizes/program.py` makes
 * them; its results are numbers of steps. Each dim of a model is a dim of an input, and each open
 * dim of an input is a dim of the model. Checks say which relations must hold between dims. */

/* A part of the arena; parts that are used at the same time do not overlap. 24 bytes. */
typedef struct braid_buffer_v1 {
  int64_t bytes; /* offset 0: number of the result that says how many bytes it has */
  int64_t first; /* offset 8: the step of the code at which its use begins */
  int64_t last;  /* offset 16: the last one at which it is used */
} braid_buffer_v1;

enum braid_size_check_kind {
  BRAID_SIZE_IS_ZERO = 0,
  BRAID_SIZE_IS_NOT_NEGATIVE = 1,
};

/* A condition that must hold for the code to run. 24 bytes. */
typedef struct braid_size_check_v1 {
  int64_t size;        /* offset 0: number of a result */
  int64_t kind;        /* offset 8: a braid_size_check_kind */
  const char *message; /* offset 16: why the run fails where that does not hold; the sizes of the
                        * model's dims are added */
} braid_size_check_v1;

/* An element of an input whose value is a size, which decides shapes. 24 bytes. */
typedef struct braid_value_size_v1 {
  int64_t input;   /* offset 0: of i32 or i64, and of a fixed shape */
  int64_t element; /* offset 8: its number, row-major */
  int64_t dim;     /* offset 16: which of the model's dims it is */
} braid_value_size_v1;

/* 96 bytes. */
typedef struct braid_open_v1 {
  int64_t step_count;                  /* offset 0 */
  const int64_t *steps;                /* offset 8: four words each */
  int64_t result_count;                /* offset 16 */
  const int64_t *results;              /* offset 24: numbers of steps that give integers */
  int64_t buffer_count;                /* offset 32 */
  const braid_buffer_v1 *buffers;      /* offset 40 */
  const int64_t *const *output_shapes; /* offset 48: `rank` numbers of results per output */
  int64_t check_count;                 /* offset 56 */
  const braid_size_check_v1 *checks;   /* offset 64 */
  int64_t value_count;                 /* offset 72 */
  const braid_value_size_v1 *values;   /* offset 80 */
  const int64_t *const *input_shapes;  /* offset 88: `rank` numbers of results per input, -1 for a
                                        * dim that is fixed or one of the model's; NULL where all
                                        * are. A run at other sizes fails */
} braid_open_v1;

/* A weight that is stored smaller than code reads it. When a model is loaded, `matrix` is applied
 * along the middle dim of [outer][inputs][inner], which gives f32[outer][outputs][inner]. 64 bytes.
 */
typedef struct braid_expansion_v1 {
  int64_t stored;       /* offset 0: bytes into the weights, a multiple of 64 */
  int64_t expanded;     /* offset 8: bytes into the expanded weights, a multiple of 64 */
  int64_t dtype;        /* offset 16: of what is stored, f32, f16 or bf16 as ONNX numbers them */
  int64_t outer;        /* offset 24 */
  int64_t inputs;       /* offset 32: from 1 to 64 */
  int64_t outputs;      /* offset 40: from 1 to 64 */
  int64_t inner;        /* offset 48 */
  const double *matrix; /* offset 56: `outputs` rows of `inputs` */
} braid_expansion_v1;

/* A model whose data decide sizes runs in phases, one after the other. Operands and results of
 * phases are numbered values; the first ones are the inputs of the model. 24 bytes. */
typedef struct braid_phase_v1 {
  const struct braid_model_v2 *model; /* offset 0: reads the weights of the whole model; has no
                                       * variants, devices, expanded weights or phases */
  const int64_t *inputs;              /* offset 8: the value that each input is */
  const int64_t *outputs;             /* offset 16: the value that each output is, which no earlier
                                       * phase has written */
} braid_phase_v1;

/* 32 bytes. */
typedef struct braid_phases_v1 {
  int64_t count;                /* offset 0: at least 1 */
  const braid_phase_v1 *phases; /* offset 8 */
  int64_t value_count;          /* offset 16 */
  const int64_t *outputs;       /* offset 24: the value that each output of the model is */
} braid_phases_v1;

/* Code of an open model for some sizes of its dims, with separate decisions. 16
 * bytes. */
typedef struct braid_specialization_v1 {
  const int64_t *sizes;               /* offset 0: by dim of the model, -1 for any */
  const struct braid_model_v2 *model; /* offset 8: an open model with the inputs and outputs of the
                                         whole model; reads its weights */
} braid_specialization_v1;

/* An input that takes the value of an output in the next run. 32 bytes. */
typedef struct braid_state_v1 {
  int64_t input;    /* offset 0: its number */
  int64_t output;   /* offset 8: of the same type and rank */
  int64_t appended; /* offset 16: not 0 where the output begins with the elements of the input, so
                     * that both may be one buffer */
  const int64_t *order; /* offset 24: dim i of both is dim `order[i]` of the model as it was
                         * written; NULL where all are in their places */
} braid_state_v1;

/* A compiled model. Without variants, `run` takes all shapes within the bounds; with variants it
 * is NULL, and the runtime chooses one by the shapes of the inputs; with phases it is NULL too. 248
 * bytes before version 15, 264 in it, 280 from 16 on. */
typedef struct braid_model_v2 {
  int64_t abi_version;                /* offset 0: what the code needs */
  int64_t input_count;                /* offset 8 */
  const braid_tensor_v2 *inputs;      /* offset 16 */
  int64_t output_count;               /* offset 24 */
  const braid_tensor_v2 *outputs;     /* offset 32 */
  int64_t arena_bytes;                /* offset 40: 0 for an open model, whose arena has what its
                                       * buffers take */
  int64_t arena_align;                /* offset 48: a power of two; 0 means 64 */
  int64_t feature_count;              /* offset 56 */
  const char *const *features;        /* offset 64: required CPU features, LLVM's names */
  int64_t counter_count;              /* offset 72: 0 when compiled without profiling */
  const char *const *counter_names;   /* offset 80 */
  braid_run run;                      /* offset 88 */
  int64_t dim_count;                  /* offset 96 */
  const braid_dim_v2 *dims;           /* offset 104 */
  int64_t variant_count;              /* offset 112 */
  const braid_variant_v2 *variants;   /* offset 120 */
  int64_t weights_bytes;              /* offset 128: of the weights that the code reads */
  int64_t device_count;               /* offset 136: 0 for a model that the host runs alone */
  const braid_device_v1 *devices;     /* offset 144 */
  int64_t function_count;             /* offset 152 */
  const braid_function_v1 *functions; /* offset 160 */
  int64_t requests;                   /* offset 168: of a stream that are under way at once; 0
                                       * where streams run the model as a whole */
  int64_t stage_count;                /* offset 176: 0 likewise */
  const braid_stage_v1 *stages;       /* offset 184: all launches, in an order they can run in */
  int64_t channel_count;              /* offset 192 */
  const braid_channel_v1 *channels;   /* offset 200 */
  const braid_open_v1
      *open; /* offset 208: NULL unless the model is open and has neither variants nor devices */
  int64_t expanded_bytes;               /* offset 216: of the weights that are expanded at load */
  int64_t expansion_count;              /* offset 224 */
  const braid_expansion_v1 *expansions; /* offset 232 */
  const braid_phases_v1 *phases; /* offset 240: NULL unless data decide sizes of the model, which
                                    then has neither code nor an arena of its own */
  /* Since version 15. */
  int64_t specialization_count;                   /* offset 248: of an open model, else 0 */
  const braid_specialization_v1 *specializations; /* offset 256: the first that fits runs */
  /* Since version 16. */
  int64_t state_count;          /* offset 264: of a model without phases and variants, else 0 */
  const braid_state_v1 *states; /* offset 272 */
} braid_model_v2;

/* ---- What a program calls ------------------------------------------------------------------
 *
 * Functions that return a pointer return NULL on failure, those that return int nonzero;
 * `braid_last_error` then says why. A pointer that is NULL where none may be is a failure too.
 *
 * A model is immutable and may be shared by threads. A context owns the arena and the profile of
 * its runs and serves one thread at a time: two threads use two contexts of one model. It keeps the
 * plans of the sizes at which an open model ran last, for all contexts.
 */
#if defined(_WIN32)
#define BRAID_API
#else
#define BRAID_API __attribute__((visibility("default")))
#endif

typedef struct braid_model braid_model_t;
typedef struct braid_context braid_context_t;

/* Text of the calling thread's last failure; "" if there was none. Valid until its next one. */
BRAID_API const char *braid_last_error(void);

/* Returns 1 if this CPU and its operating system have the feature with that LLVM name, 0 if not, -1
 * for an unknown name. */
BRAID_API int braid_cpu_supports(const char *feature);

/* The digest of artifacts: XXH64 with seed 0. */
BRAID_API uint64_t braid_digest(const void *data, size_t size);

/* Opens an artifact file. Header, manifest and code are checked against their digests here, the
 * weights, which stay mapped from the file, before the first run. The file must not be changed in
 * place while the model lives; it may be replaced or removed. */
BRAID_API braid_model_t *braid_model_open(const char *path);

/* Maps an artifact file for reading, as `braid_model_open` does, and gives the mapping up. */
BRAID_API const void *braid_map_file(const char *path, size_t *size);
BRAID_API void braid_unmap_file(const void *data, size_t size);

/* Opens an artifact that lies in memory, at a multiple of 64, and outlives the model. Messages call
 * it by `name`. */
BRAID_API braid_model_t *braid_model_from_artifact(const void *data, size_t size, const char *name);

/* Loads a code object from memory (it is copied). `weights`, on a multiple of 64, must outlive the
 * model; NULL and 0 where the code reads none. Neither is checked for damage. */
BRAID_API braid_model_t *braid_model_from_memory(const void *code, size_t size, const void *weights,
                                                 size_t weights_bytes);

/* Wraps code that is already in this process, as after a JIT. It must outlive the model, and so
 * must the weights; see `braid_model_from_memory`. */
BRAID_API braid_model_t *braid_model_from_descriptor(const braid_model_v2 *descriptor,
                                                     const void *weights, size_t weights_bytes);

/* The model's description: names, shapes, arena size. Lives as long as the model. */
BRAID_API const braid_model_v2 *braid_model_describe(const braid_model_t *model);

/* Gives the model up; it goes when the last of its contexts has gone. NULL is allowed. */
BRAID_API void braid_model_close(braid_model_t *model);

/* Creates a context that runs on `threads` threads (0: one for each CPU that the
 * process may use). */
BRAID_API braid_context_t *braid_context_create(braid_model_t *model, int64_t threads);

/* Sets the sizes of input `index` for the next runs. Needed only where a dim is open; until then
 * an open dim has its upper bound, and where that is INT64_MAX, runs fail. */
BRAID_API int braid_context_set_input_shape(braid_context_t *context, int64_t index,
                                            const int64_t *shape);

/* Reads the sizes in the elements of input `index` (`braid_value_size_v1`), on which the shapes of
 * outputs depend before a run. A run reads them itself. Other inputs are left alone.
 */
BRAID_API int braid_context_set_input_values(braid_context_t *context, int64_t index,
                                             const void *data);

/* Sizes of output `index`: for an open model and one with variants, for the input shapes that are
 * set; for one with phases, of the last run, and NULL before it; for others, of the last run
 * (before it: upper bounds). NULL for a wrong index, and where the model does not run at these
 * shapes. Valid until the next call of this or of run. */
BRAID_API const int64_t *braid_context_output_shape(braid_context_t *context, int64_t index);

/* Runs the model. A buffer is NULL only where its tensor has no elements. Output buffers hold the
 * output: for an open model and one with variants, at the sizes of `braid_context_output_shape`;
 * for others, at the upper bounds. They overlap neither each other nor an input: they are written
 * while inputs are still read. The arena of an open model grows with the sizes; without enough
 * memory the run fails, and later runs may succeed. Of a model with phases, `outputs` is NULL:
 * `braid_context_output` has the results. */
BRAID_API int braid_context_run(braid_context_t *context, void *const *inputs,
                                void *const *outputs);

/* Output `index` of the last run of a model with phases, row-major at the sizes that
 * `braid_context_output_shape` says. It belongs to the context until the next run, or is the input
 * that it equals. NULL for a wrong index, before a run, and for other models. */
BRAID_API const void *braid_context_output(braid_context_t *context, int64_t index);

/* Frees the context's memory for runs; the next run allocates it again. NULL is
 * allowed. */
BRAID_API void braid_context_trim(braid_context_t *context);

/* Lets `poll` be called now and then, at most twenty times a second, on the thread that runs the
 * model, while a loop of the model goes on: where it returns nonzero the run ends soon, and fails.
 * NULL for none. Kernels are not interrupted. */
BRAID_API void braid_context_set_poll(braid_context_t *context, int (*poll)(void));

/* Executions of, and nanoseconds spent under, each profile counter since the last reset:
 * `counter_count` numbers each, owned by the context. */
BRAID_API const uint64_t *braid_context_profile_counts(const braid_context_t *context);
BRAID_API const uint64_t *braid_context_profile_times(const braid_context_t *context);
BRAID_API void braid_context_profile_reset(braid_context_t *context);

enum { BRAID_MOST_PROFILED_SIZES = 256 };

/* The sizes of the model's dims in runs since the last reset, at most `capacity` different ones in
 * no order: `dim_count` numbers each to `sizes`, and the number of their runs to `counts`, which
 * may be too high by at most `errors`. All were kept where fewer than BRAID_MOST_PROFILED_SIZES are
 * returned, else the frequent ones. Returns how many there are, 0 for a model without open dims or
 * profile counters, -1 for a context that is NULL. */
BRAID_API int64_t braid_context_profile_sizes(const braid_context_t *context, int64_t capacity,
                                              int64_t *sizes, uint64_t *counts, uint64_t *errors);

/* Nanoseconds that the launches on one of the model's devices took since the last reset, by the
 * device's own account: of a simulated device, its time. -1 for a wrong index. */
BRAID_API int64_t braid_context_device_time(const braid_context_t *context, int64_t device);

/* Frees a context. NULL is allowed. */
BRAID_API void braid_context_close(braid_context_t *context);

/* ---- Sessions ------------------------------------------------------------------------------
 *
 * A session keeps the state of a model between runs: inputs that take the values of outputs, listed
 * in `states` of the description, such as a decoder's keys and values of earlier tokens. Each run
 * is a step; it takes the inputs that are no state, and gives the outputs that are no state. A
 * state that grows is appended to in place.
 *
 * A session is memory alone: steps run on a context, which sessions of a model may share. A session
 * serves one thread at a time, and so does a context; a fork is a session of its own, so that
 * threads may run forks at the same time, each on a context of its own. Sessions and forks may be
 * closed in any order.
 */
typedef struct braid_session braid_session_t;

/* Creates a session of a model that was compiled with a state (`--state`). There is memory for
 * `capacity` elements along the dim that grows at first, and for twice as many each time that it is
 * short; 0 for none. */
BRAID_API braid_session_t *braid_session_create(braid_model_t *model, int64_t capacity);

/* A session that goes on from the same state, as beams of a search do. Nothing is copied until both
 * continue, and then only the state of the second one. */
BRAID_API braid_session_t *braid_session_fork(const braid_session_t *session);

/* Begins anew: the state is zeros, without elements along dims that no other input tells. */
BRAID_API int braid_session_reset(braid_session_t *session);

/* Sets the state of input `input` to a copy of `data`, row-major, with this shape and the dims of
 * the description. After `braid_session_create` or `braid_session_reset`, all states are set before
 * a step, or none. */
BRAID_API int braid_session_set_state(braid_session_t *session, int64_t input, const int64_t *shape,
                                      const void *data);

/* Sets the shapes of the state's inputs in a context, in which those of the others are set:
 * `braid_context_output_shape` then says how large the outputs of the next step are. */
BRAID_API int braid_session_set_shapes(const braid_session_t *session, braid_context_t *context);

/* Runs a step on a context in which the shapes of inputs are set that are no state, and keeps the
 * new state. The lists of buffers are as for `braid_context_run`; their entries for the state are
 * ignored. If the step fails, the state does not change. */
BRAID_API int braid_session_step(braid_session_t *session, braid_context_t *context,
                                 void *const *inputs, void *const *outputs);

/* The number of elements of the first state that grows along the dim in which it does: of a decoder
 * the tokens so far. -1 where no state grows. */
BRAID_API int64_t braid_session_length(const braid_session_t *session);

/* The shape and the elements of the state of input `input`; NULL for another input, and before the
 * first step if the shape is unknown. Valid until the session is used or closed. */
BRAID_API const int64_t *braid_session_shape(const braid_session_t *session, int64_t input);
BRAID_API const void *braid_session_data(const braid_session_t *session, int64_t input);

/* Frees a session. NULL is allowed. */
BRAID_API void braid_session_close(braid_session_t *session);

/* ---- Streams -------------------------------------------------------------------------------
 *
 * A stream runs a model on requests that come one after the other, and gives their results in the
 * same order. If the model launches functions on several devices, these work concurrently on
 * consecutive requests: each has a thread, and values between them wait in bounded channels. Any
 * other model has one thread that runs it as a whole.
 *
 * Threads may push and pop at the same time, one at each end. A stream belongs to the process that
 * opened it: in a child of fork its calls fail, and closing it does nothing.
 */
typedef struct braid_stream braid_stream_t;

typedef struct braid_stream_options {
  int64_t threads;  /* as of a context */
  int64_t deadline; /* nanoseconds that one launch may take (of a model without: one run), after
                     * which the stream is lost; 0 for any time */
  int64_t goes_on;  /* not 0: a request that fails does not end the stream */
} braid_stream_options;

enum braid_stream_result {
  BRAID_STREAM_DONE = 0,   /* the outputs of the oldest request are there */
  BRAID_STREAM_FAILED = 1, /* it has failed, and `braid_last_error` names the function */
  BRAID_STREAM_EMPTY = 2,  /* no request is under way, or the stream has ended */
  BRAID_STREAM_LATER = 3,  /* it did not end in time */
  BRAID_STREAM_LOST = 4    /* a launch, which `braid_last_error` names, exceeded its deadline: there
                              are no more results */
};

/* `options` may be NULL for one thread and no deadline. */
BRAID_API braid_stream_t *braid_stream_open(braid_model_t *model,
                                            const braid_stream_options *options);

/* How many requests may be under way: handed in, and their results not taken. */
BRAID_API int64_t braid_stream_capacity(const braid_stream_t *stream);

/* Hands in a request, and waits while as many are under way as may be. Buffers are as for
 * `braid_context_run` and belong to the stream until the result was taken; the lists are copied.
 * `shapes` has the sizes of each input; NULL where no dim is open. */
BRAID_API int braid_stream_push(braid_stream_t *stream, void *const *inputs, void *const *outputs,
                                const int64_t *const *shapes);

/* Takes the result of the oldest request, for which it waits so many nanoseconds, or without limit
 * if that is negative. A braid_stream_result. */
BRAID_API int braid_stream_pop(braid_stream_t *stream, int64_t timeout);

/* Sizes of output `index` of the last result that was taken; NULL for a wrong index. Valid until
 * the next one is. */
BRAID_API const int64_t *braid_stream_output_shape(const braid_stream_t *stream, int64_t index);

/* How often stage `index` of the model has run (of a model without stages: the model, as stage 0),
 * and for how many nanoseconds. Not 0 for a wrong index. */
BRAID_API int braid_stream_stage(braid_stream_t *stream, int64_t index, int64_t *count,
                                 int64_t *nanoseconds);

/* Adds the executions of, and nanoseconds spent under, each profile counter to `counts` and
 * `times`, `counter_count` numbers each: those of stages that have ended since the stream was
 * opened, or since they were reset. Not 0 on failure. */
BRAID_API int braid_stream_profile(braid_stream_t *stream, uint64_t *counts, uint64_t *times);
BRAID_API void braid_stream_profile_reset(braid_stream_t *stream);

/* Ends the stream: waits for the launches that are running, forgets all requests, and frees it.
 * Not 0 where one runs beyond its deadline: it may then still use the buffers of requests whose
 * results were not taken. NULL is allowed. */
BRAID_API int braid_stream_close(braid_stream_t *stream);

#ifdef __cplusplus
}
#endif

#endif /* BRAID_RUNTIME_H */
