/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whether a descriptor is one that this runtime can rely on. */
#include "internal.h"
#include "sessions.h"
#include "sizes.h"
#include "specializations.h"

#include <stdlib.h>
#include <string.h>

/* Code generators write these structs by offset. */
_Static_assert(sizeof(braid_tensor_v2) == 48, "braid_tensor_v2");
_Static_assert(sizeof(braid_model_v2) == 280, "braid_model_v2");
_Static_assert(sizeof(braid_dim_v2) == 16, "braid_dim_v2");
_Static_assert(sizeof(braid_variant_v2) == 24, "braid_variant_v2");
_Static_assert(offsetof(braid_model_v2, run) == 88, "braid_model_v2.run");
_Static_assert(offsetof(braid_model_v2, weights_bytes) == 128, "braid_model_v2.weights_bytes");
_Static_assert(offsetof(braid_model_v2, functions) == 160, "braid_model_v2.functions");
_Static_assert(offsetof(braid_model_v2, open) == 208, "braid_model_v2.open");
_Static_assert(offsetof(braid_model_v2, expansions) == 232, "braid_model_v2.expansions");
_Static_assert(offsetof(braid_model_v2, phases) == 240, "braid_model_v2.phases");
_Static_assert(sizeof(braid_specialization_v1) == 16, "braid_specialization_v1");
_Static_assert(sizeof(braid_state_v1) == 32, "braid_state_v1");
_Static_assert(sizeof(braid_phase_v1) == 24, "braid_phase_v1");
_Static_assert(sizeof(braid_phases_v1) == 32, "braid_phases_v1");
_Static_assert(sizeof(braid_expansion_v1) == 64, "braid_expansion_v1");
_Static_assert(sizeof(braid_open_v1) == 96, "braid_open_v1");
_Static_assert(sizeof(braid_value_size_v1) == 24, "braid_value_size_v1");
_Static_assert(sizeof(braid_buffer_v1) == 24, "braid_buffer_v1");
_Static_assert(sizeof(braid_size_check_v1) == 24, "braid_size_check_v1");
_Static_assert(sizeof(braid_size_step) == 4 * sizeof(int64_t), "braid_open_v1.steps");
_Static_assert(sizeof(braid_code_v1) == 24, "braid_code_v1");
_Static_assert(sizeof(braid_device_v1) == 48, "braid_device_v1");
_Static_assert(sizeof(braid_function_v1) == 72, "braid_function_v1");
_Static_assert(offsetof(braid_function_v1, run) == 56, "braid_function_v1.run");
_Static_assert(sizeof(braid_stage_v1) == 48, "braid_stage_v1");
_Static_assert(sizeof(braid_channel_v1) == 16, "braid_channel_v1");
_Static_assert(offsetof(braid_env, output_shapes) == 56, "braid_env.output_shapes");
_Static_assert(offsetof(braid_env, post) == 64, "braid_env.post");
_Static_assert(offsetof(braid_env, wait) == 72, "braid_env.wait");
_Static_assert(offsetof(braid_env, run_inter_op) == 80, "braid_env.run_inter_op");
_Static_assert(offsetof(braid_env, submit) == 88, "braid_env.submit");
_Static_assert(offsetof(braid_env, finish) == 96, "braid_env.finish");
_Static_assert(offsetof(braid_env, is_stopped) == 104, "braid_env.is_stopped");
_Static_assert(offsetof(braid_env, sizes) == 120, "braid_env.sizes");
_Static_assert(offsetof(braid_env, expanded) == 128, "braid_env.expanded");

/* Checks each part of an open model: results computed from it can be counted in 31 bits. */
enum { MOST_PARTS = 1 << 20 };

static bool malformed(const char *what, int64_t number) {
  braid_set_error("the model's descriptor is malformed: %s %lld", what, (long long)number);
  return false;
}

/* Whether a list has at least 0 elements, and a place if it has any. */
static bool is_list(int64_t count, const void *list) {
  return count >= 0 && (count == 0 || list != NULL);
}

static bool has_names(int64_t count, const char *const *names) {
  if (!is_list(count, names))
    return false;
  for (int64_t i = 0; i < count; ++i)
    if (names[i] == NULL)
      return false;
  return true;
}

/* Dims that are open in a model without bounds are checked when they have a size. */
static bool check_tensor(const braid_tensor_v2 *tensor, int64_t dim_count, bool is_open) {
  if (tensor->name == NULL || tensor->rank < 0 || tensor->rank > BRAID_MAX_RANK ||
      !is_list(tensor->rank, tensor->shape) || !is_list(tensor->rank, tensor->bound))
    return false;
  int64_t shape[BRAID_MAX_RANK];
  for (int64_t d = 0; d < tensor->rank; ++d) {
    int64_t size = tensor->shape[d], bound = tensor->bound[d];
    int64_t dim = tensor->dims != NULL ? tensor->dims[d] : -1;
    if (bound < 0 || (size != -1 && size != bound) || dim < -1 || dim >= dim_count)
      return false;
    shape[d] = is_open && size == -1 ? 1 : bound;
  }
  return braid_is_addressable(tensor->rank, shape);
}

static bool check_tensors(const char *what, int64_t count, const braid_tensor_v2 *tensors,
                          const braid_model_v2 *descriptor) {
  if (!is_list(count, tensors))
    return malformed(what, count);
  for (int64_t i = 0; i < count; ++i)
    if (!check_tensor(&tensors[i], descriptor->dim_count,
                      descriptor->open != NULL || descriptor->phases != NULL))
      return malformed(what, i);
  return true;
}

static bool check_variants(const braid_model_v2 *descriptor) {
  if (!is_list(descriptor->variant_count, descriptor->variants) ||
      (descriptor->run == NULL) != (descriptor->variant_count > 0 || descriptor->phases != NULL))
    return malformed("number of variants", descriptor->variant_count);
  for (int64_t i = 0; i < descriptor->variant_count; ++i) {
    const braid_variant_v2 *variant = &descriptor->variants[i];
    if (variant->run == NULL || !is_list(descriptor->dim_count, variant->sizes) ||
        !is_list(descriptor->output_count, variant->output_shapes))
      return malformed("variant", i);
    for (int64_t output = 0; output < descriptor->output_count; ++output)
      if (!is_list(descriptor->outputs[output].rank, variant->output_shapes[output]))
        return malformed("variant", i);
  }
  return true;
}

static bool check_device(const braid_model_v2 *descriptor, const braid_device_v1 *device) {
  int64_t end;
  if (device->name == NULL || device->plugin == NULL || device->weights_offset < 0 ||
      device->weights_bytes < 0 || !is_list(device->code_count, device->codes) ||
      __builtin_add_overflow(device->weights_offset, device->weights_bytes, &end) ||
      end > descriptor->weights_bytes)
    return false;
  for (int64_t i = 0; i < device->code_count; ++i)
    if (device->codes[i].kind == NULL || !is_list(device->codes[i].bytes, device->codes[i].data))
      return false;
  return true;
}

static bool check_function(const braid_model_v2 *descriptor, const braid_function_v1 *function) {
  int64_t buffers;
  if (function->name == NULL || function->device < 0 ||
      function->device >= descriptor->device_count || function->input_count < 0 ||
      function->output_count < 0 || function->arena_bytes < 0 || function->nanoseconds < 0 ||
      __builtin_add_overflow(function->input_count, function->output_count, &buffers) ||
      !is_list(buffers, function->bytes) || (function->on_caller != 0 && function->run == NULL))
    return false;
  for (int64_t i = 0; i < buffers; ++i)
    if (function->bytes[i] < 0)
      return false;
  return true;
}

static bool check_devices(const braid_model_v2 *descriptor) {
  if (!is_list(descriptor->device_count, descriptor->devices))
    return malformed("number of devices", descriptor->device_count);
  if (!is_list(descriptor->function_count, descriptor->functions))
    return malformed("number of functions", descriptor->function_count);
  for (int64_t i = 0; i < descriptor->device_count; ++i)
    if (!check_device(descriptor, &descriptor->devices[i]))
      return malformed("device", i);
  for (int64_t i = 0; i < descriptor->function_count; ++i)
    if (!check_function(descriptor, &descriptor->functions[i]))
      return malformed("function", i);
  return true;
}

bool braid_has_devices_of(const braid_model_v2 *part, const braid_model_v2 *whole) {
  if (part->device_count == 0)
    return part->function_count == 0;
  return part->devices == whole->devices && part->device_count == whole->device_count &&
         part->functions == whole->functions && part->function_count == whole->function_count;
}

/* Whether replica `index` of a stage is a function like its own, on another device than those
 * before it. */
static bool is_replica(const braid_model_v2 *descriptor, const braid_stage_v1 *stage,
                       int64_t index) {
  int64_t number = stage->replicas[index];
  if (number < 0 || number >= descriptor->function_count)
    return false;
  const braid_function_v1 *own = &descriptor->functions[stage->function];
  const braid_function_v1 *other = &descriptor->functions[number];
  bool same = other->input_count == own->input_count && other->output_count == own->output_count &&
              other->device != own->device && !own->on_caller && !other->on_caller;
  for (int64_t i = 0; same && i < own->input_count + own->output_count; ++i)
    same = other->bytes[i] == own->bytes[i];
  for (int64_t i = 0; same && i < index; ++i)
    same = descriptor->functions[stage->replicas[i]].device != other->device;
  return same;
}

/* Whether `stage` reads only buffers that earlier stages wrote (marked in `written`), and writes
 * only other buffers. */
static bool check_stage(const braid_model_v2 *descriptor, const braid_stage_v1 *stage,
                        int64_t buffers, bool *written) {
  if (stage->function < 0 || stage->function >= descriptor->function_count ||
      stage->nanoseconds < 0)
    return false;
  const braid_function_v1 *function = &descriptor->functions[stage->function];
  if (!is_list(function->input_count, stage->inputs) ||
      !is_list(function->output_count, stage->outputs) ||
      !is_list(stage->replica_count, stage->replicas))
    return false;
  for (int64_t i = 0; i < stage->replica_count; ++i)
    if (!is_replica(descriptor, stage, i))
      return false;
  for (int64_t i = 0; i < function->input_count; ++i)
    if (stage->inputs[i] < 0 || stage->inputs[i] >= buffers || !written[stage->inputs[i]])
      return false;
  for (int64_t i = 0; i < function->output_count; ++i) {
    int64_t buffer = stage->outputs[i];
    if (buffer < descriptor->input_count || buffer >= buffers || written[buffer])
      return false;
    int64_t channel = buffer - descriptor->input_count - descriptor->output_count;
    if (channel >= 0 &&
        function->bytes[function->input_count + i] > descriptor->channels[channel].bytes)
      return false;
    written[buffer] = true;
  }
  return true;
}

static bool check_stages(const braid_model_v2 *descriptor) {
  if (!is_list(descriptor->stage_count, descriptor->stages))
    return malformed("number of stages", descriptor->stage_count);
  if (!is_list(descriptor->channel_count, descriptor->channels))
    return malformed("number of channels", descriptor->channel_count);
  if (descriptor->requests < 0 || (descriptor->requests == 0) != (descriptor->stage_count == 0) ||
      descriptor->requests > INT32_MAX)
    return malformed("number of requests", descriptor->requests);
  for (int64_t i = 0; i < descriptor->channel_count; ++i) {
    const braid_channel_v1 *channel = &descriptor->channels[i];
    int64_t bytes;
    if (channel->bytes < 0 || channel->slots < 1 ||
        __builtin_mul_overflow(channel->bytes, channel->slots, &bytes))
      return malformed("channel", i);
  }
  if (descriptor->stage_count == 0)
    return true;
  int64_t ports = descriptor->input_count + descriptor->output_count;
  int64_t buffers = ports + descriptor->channel_count;
  bool *written = calloc((size_t)buffers + 1, sizeof *written);
  if (written == NULL) {
    braid_set_error("out of memory");
    return false;
  }
  for (int64_t i = 0; i < descriptor->input_count; ++i)
    written[i] = true;
  int64_t wrong = -1;
  for (int64_t i = 0; i < descriptor->stage_count && wrong < 0; ++i)
    if (!check_stage(descriptor, &descriptor->stages[i], buffers, written))
      wrong = i;
  int64_t missing = 0;
  while (missing < buffers && written[missing])
    ++missing;
  free(written);
  if (wrong >= 0)
    return malformed("stage", wrong);
  return missing == buffers || malformed("buffer of stages", missing);
}

/* ---- Open models ---- */

struct braid_size_program braid_sizes_of(const braid_model_v2 *model) {
  const braid_open_v1 *open = model->open;
  return (braid_size_program){open->step_count, (const braid_size_step *)open->steps,
                              model->dim_count, open->result_count, open->results};
}

static bool is_short_list(int64_t count, const void *list) {
  return is_list(count, list) && count <= MOST_PARTS;
}

static bool is_result(const braid_open_v1 *open, int64_t number) {
  return number >= 0 && number < open->result_count;
}

static bool check_values(const braid_model_v2 *descriptor) {
  const braid_open_v1 *open = descriptor->open;
  if (!is_short_list(open->value_count, open->values))
    return malformed("number of sizes in inputs", open->value_count);
  for (int64_t i = 0; i < open->value_count; ++i) {
    const braid_value_size_v1 *own = &open->values[i];
    if (own->input < 0 || own->input >= descriptor->input_count || own->dim < 0 ||
        own->dim >= descriptor->dim_count)
      return malformed("size in inputs", i);
    const braid_tensor_v2 *input = &descriptor->inputs[own->input];
    int64_t elements = 1; /* of a shape that is addressable */
    for (int64_t d = 0; d < input->rank; ++d)
      elements *= input->shape[d] >= 0 ? input->shape[d] : 0;
    if (braid_value_size(input->dtype) == 0 || own->element < 0 || own->element >= elements)
      return malformed("size in inputs", i);
  }
  return true;
}

/* Whether the sizes of all dims and inputs follow from the others. */
static bool check_open_dims(const braid_model_v2 *descriptor) {
  for (int64_t dim = 0; dim < descriptor->dim_count; ++dim) {
    bool found = false;
    for (int64_t i = 0; i < descriptor->open->value_count; ++i)
      found |= descriptor->open->values[i].dim == dim;
    for (int64_t i = 0; i < descriptor->input_count; ++i)
      for (int64_t d = 0; d < descriptor->inputs[i].rank; ++d)
        found |= descriptor->inputs[i].dims != NULL && descriptor->inputs[i].dims[d] == dim;
    if (!found)
      return malformed("no input has dim", dim);
  }
  for (int64_t i = 0; i < descriptor->input_count; ++i) {
    const braid_tensor_v2 *input = &descriptor->inputs[i];
    for (int64_t d = 0; d < input->rank; ++d)
      if (input->shape[d] < 0 && (input->dims == NULL || input->dims[d] < 0) &&
          (descriptor->open->input_shapes == NULL || descriptor->open->input_shapes[i][d] < 0))
        return malformed("nothing says the size of an open dim of input", i);
  }
  return true;
}

static bool check_sizes(const braid_model_v2 *descriptor) {
  const braid_open_v1 *open = descriptor->open;
  if (!is_short_list(open->step_count, open->steps))
    return malformed("number of steps of sizes", open->step_count);
  if (!is_short_list(open->result_count, open->results))
    return malformed("number of sizes", open->result_count);
  braid_size_program program = braid_sizes_of(descriptor);
  return braid_check_sizes(&program) || malformed("sizes, of so many steps:", open->step_count);
}

static bool check_input_shapes(const braid_model_v2 *descriptor) {
  const braid_open_v1 *open = descriptor->open;
  for (int64_t i = 0; open->input_shapes != NULL && i < descriptor->input_count; ++i) {
    if (!is_list(descriptor->inputs[i].rank, open->input_shapes[i]))
      return malformed("shape of input", i);
    for (int64_t d = 0; d < descriptor->inputs[i].rank; ++d)
      if (open->input_shapes[i][d] != -1 && !is_result(open, open->input_shapes[i][d]))
        return malformed("shape of input", i);
  }
  return true;
}

static bool check_open(const braid_model_v2 *descriptor) {
  const braid_open_v1 *open = descriptor->open;
  if (descriptor->variant_count > 0)
    return malformed("variants of an open model", descriptor->variant_count);
  if (descriptor->arena_bytes != 0)
    return malformed("arena bytes of an open model", descriptor->arena_bytes);
  if (!check_values(descriptor) || !check_input_shapes(descriptor) ||
      !check_open_dims(descriptor) || !check_sizes(descriptor))
    return false;
  if (!is_short_list(open->buffer_count, open->buffers))
    return malformed("number of buffers", open->buffer_count);
  for (int64_t i = 0; i < open->buffer_count; ++i)
    if (!is_result(open, open->buffers[i].bytes) || open->buffers[i].first < 0 ||
        open->buffers[i].last < open->buffers[i].first)
      return malformed("buffer", i);
  if (!is_list(descriptor->output_count, open->output_shapes))
    return malformed("shapes of outputs", descriptor->output_count);
  for (int64_t i = 0; i < descriptor->output_count; ++i) {
    if (!is_list(descriptor->outputs[i].rank, open->output_shapes[i]))
      return malformed("shape of output", i);
    for (int64_t d = 0; d < descriptor->outputs[i].rank; ++d)
      if (!is_result(open, open->output_shapes[i][d]))
        return malformed("shape of output", i);
  }
  if (!is_short_list(open->check_count, open->checks))
    return malformed("number of checks", open->check_count);
  for (int64_t i = 0; i < open->check_count; ++i)
    if (!is_result(open, open->checks[i].size) || open->checks[i].message == NULL ||
        (open->checks[i].kind != BRAID_SIZE_IS_ZERO &&
         open->checks[i].kind != BRAID_SIZE_IS_NOT_NEGATIVE))
      return malformed("check", i);
  return true;
}

/* ---- Phases ---- */

/* Whether a phase reads existing values of the right types, and writes other ones. `of`
 * has the output or input that each value is, NULL for those that no phase has written yet. */
static bool check_phase(const braid_model_v2 *descriptor, const braid_phase_v1 *phase,
                        const braid_tensor_v2 **of) {
  const braid_model_v2 *own = phase->model;
  int64_t count = descriptor->phases->value_count;
  if (own == NULL || own->phases != NULL || own->variant_count != 0 ||
      !braid_has_devices_of(own, descriptor) || own->expanded_bytes != 0 || own->run == NULL ||
      own->counter_count != descriptor->counter_count ||
      own->weights_bytes > descriptor->weights_bytes || !braid_check_descriptor(own) ||
      !is_list(own->input_count, phase->inputs) || !is_list(own->output_count, phase->outputs))
    return false;
  for (int64_t i = 0; i < own->input_count; ++i) {
    int64_t value = phase->inputs[i];
    if (value < 0 || value >= count || of[value] == NULL ||
        of[value]->dtype != own->inputs[i].dtype || of[value]->rank != own->inputs[i].rank)
      return false;
  }
  for (int64_t i = 0; i < own->output_count; ++i) {
    int64_t value = phase->outputs[i];
    if (value < 0 || value >= count || of[value] != NULL)
      return false;
    of[value] = &own->outputs[i];
  }
  return true;
}

static bool check_phases(const braid_model_v2 *descriptor) {
  const braid_phases_v1 *phases = descriptor->phases;
  if (descriptor->open != NULL || descriptor->variant_count > 0 || descriptor->arena_bytes != 0)
    return malformed("kind of a model with phases", phases->count);
  if (phases->count < 1 || !is_list(phases->count, phases->phases) ||
      phases->value_count < descriptor->input_count || phases->value_count > MOST_PARTS ||
      !is_list(descriptor->output_count, phases->outputs))
    return malformed("number of phases", phases->count);
  const braid_tensor_v2 **of = calloc((size_t)phases->value_count + 1, sizeof *of);
  if (of == NULL) {
    braid_set_error("out of memory");
    return false;
  }
  for (int64_t i = 0; i < descriptor->input_count; ++i)
    of[i] = &descriptor->inputs[i];
  int64_t wrong = -1, missing = -1;
  for (int64_t i = 0; i < phases->count && wrong < 0; ++i)
    if (!check_phase(descriptor, &phases->phases[i], of))
      wrong = i;
  for (int64_t i = 0; i < descriptor->output_count && wrong < 0 && missing < 0; ++i) {
    int64_t value = phases->outputs[i];
    if (value < 0 || value >= phases->value_count || of[value] == NULL ||
        of[value]->dtype != descriptor->outputs[i].dtype ||
        of[value]->rank != descriptor->outputs[i].rank)
      missing = i;
  }
  free(of);
  if (wrong >= 0)
    return malformed("phase", wrong);
  return missing < 0 || malformed("value of output", missing);
}

static bool check_states(const braid_model_v2 *descriptor) {
  int64_t wrong = braid_find_wrong_state(descriptor);
  return wrong < 0 || malformed("state", wrong);
}

static bool check_specializations(const braid_model_v2 *descriptor) {
  int64_t wrong = braid_find_wrong_specialization(descriptor);
  return wrong < 0 || malformed("specialization", wrong);
}

/* Whether `outer` times `count` times `inner` elements from `begin` on lie within `bytes`. */
static bool lies_within(int64_t begin, const braid_expansion_v1 *expansion, int64_t count,
                        int64_t size, int64_t bytes) {
  int64_t end;
  return begin >= 0 && begin % BRAID_WEIGHTS_ALIGN == 0 && expansion->outer >= 0 &&
         expansion->inner >= 0 && !__builtin_mul_overflow(size, expansion->outer, &size) &&
         !__builtin_mul_overflow(size, count, &size) &&
         !__builtin_mul_overflow(size, expansion->inner, &size) &&
         !__builtin_add_overflow(begin, size, &end) && end <= bytes;
}

static bool check_expansions(const braid_model_v2 *descriptor) {
  if (descriptor->expanded_bytes < 0 || descriptor->expanded_bytes > PTRDIFF_MAX / 2)
    return malformed("expanded bytes", descriptor->expanded_bytes);
  if (!is_list(descriptor->expansion_count, descriptor->expansions))
    return malformed("number of expansions", descriptor->expansion_count);
  for (int64_t i = 0; i < descriptor->expansion_count; ++i) {
    const braid_expansion_v1 *own = &descriptor->expansions[i];
    if (own->matrix == NULL || braid_stored_size(own->dtype) == 0 || own->inputs < 1 ||
        own->inputs > BRAID_MOST_EXPANDED || own->outputs < 1 ||
        own->outputs > BRAID_MOST_EXPANDED ||
        !lies_within(own->stored, own, own->inputs, braid_stored_size(own->dtype),
                     descriptor->weights_bytes) ||
        !lies_within(own->expanded, own, own->outputs, sizeof(float), descriptor->expanded_bytes))
      return malformed("expansion", i);
  }
  return true;
}

static bool check_features(const braid_model_v2 *descriptor) {
  for (int64_t i = 0; i < descriptor->feature_count; ++i) {
    const char *feature = descriptor->features[i];
    int supported = braid_cpu_supports(feature);
    if (supported == 1)
      continue;
    const char *why = supported < 0 ? "this runtime does not know" : "this CPU does not have";
    if (supported == 0 && strncmp(feature, "amx-", 4) == 0)
      why =
          "this CPU does not have, or the system does not give to this process (a filter of system "
          "calls, or a thread with a small alternate signal stack); compile it without AMX, "
          "for the CPU native,-amx-tile";
    braid_set_error("the model needs the CPU feature '%s', which %s", feature, why);
    return false;
  }
  return true;
}

bool braid_check_descriptor(const braid_model_v2 *descriptor) {
  if (descriptor == NULL) {
    braid_set_error("the model's code does not export 'braid_model'");
    return false;
  }
  if (descriptor->abi_version < BRAID_ABI_OLDEST || descriptor->abi_version > BRAID_ABI_VERSION) {
    braid_set_error("the model's code has ABI version %lld, this runtime runs versions %d to %d; "
                    "compile it again",
                    (long long)descriptor->abi_version, BRAID_ABI_OLDEST, BRAID_ABI_VERSION);
    return false;
  }
  int64_t align = descriptor->arena_align;
  if (descriptor->arena_bytes < 0)
    return malformed("arena bytes", descriptor->arena_bytes);
  if (align < 0 || (align & (align - 1)) != 0)
    return malformed("arena alignment", align);
  if (descriptor->weights_bytes < 0)
    return malformed("weights bytes", descriptor->weights_bytes);
  if (!is_list(descriptor->dim_count, descriptor->dims))
    return malformed("number of dims", descriptor->dim_count);
  for (int64_t i = 0; i < descriptor->dim_count; ++i)
    if (descriptor->dims[i].name == NULL)
      return malformed("dim", i);
  if (!has_names(descriptor->feature_count, descriptor->features))
    return malformed("number of CPU features", descriptor->feature_count);
  if (!has_names(descriptor->counter_count, descriptor->counter_names))
    return malformed("number of counters", descriptor->counter_count);
  return check_tensors("input", descriptor->input_count, descriptor->inputs, descriptor) &&
         check_tensors("output", descriptor->output_count, descriptor->outputs, descriptor) &&
         check_variants(descriptor) && check_devices(descriptor) && check_stages(descriptor) &&
         (descriptor->open == NULL || check_open(descriptor)) && check_expansions(descriptor) &&
         check_features(descriptor) && (descriptor->phases == NULL || check_phases(descriptor)) &&
         check_specializations(descriptor) && check_states(descriptor);
}
