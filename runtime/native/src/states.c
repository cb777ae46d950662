/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whether the states in a descriptor are valid. */
#include "sessions.h"

enum { FIRST_VERSION = 16 };

int64_t braid_state_count(const braid_model_v2 *descriptor) {
  return descriptor->abi_version < FIRST_VERSION ? 0 : descriptor->state_count;
}

/* Whether `order` has each dim once. */
static bool is_order(int64_t rank, const int64_t *order) {
  uint64_t seen = 0;
  for (int64_t d = 0; order != NULL && d < rank; ++d) {
    if (order[d] < 0 || order[d] >= rank || (seen >> order[d] & 1) != 0)
      return false;
    seen |= UINT64_C(1) << order[d];
  }
  return true;
}

static bool is_right(const braid_model_v2 *descriptor, int64_t number) {
  const braid_state_v1 *own = &descriptor->states[number];
  if (own->input < 0 || own->input >= descriptor->input_count || own->output < 0 ||
      own->output >= descriptor->output_count)
    return false;
  const braid_tensor_v2 *input = &descriptor->inputs[own->input],
                        *output = &descriptor->outputs[own->output];
  if (input->dtype != output->dtype || input->rank != output->rank ||
      !is_order(input->rank, own->order) || (own->appended != 0 && descriptor->open == NULL))
    return false;
  for (int64_t i = 0; i < number; ++i) {
    const braid_state_v1 *other = &descriptor->states[i];
    bool grows = own->appended != 0 && other->appended != 0;
    if (other->input == own->input || (grows && other->output == own->output))
      return false;
  }
  return true;
}

int64_t braid_find_wrong_state(const braid_model_v2 *descriptor) {
  int64_t count = braid_state_count(descriptor);
  if (count == 0)
    return -1;
  if (count < 0 || count > descriptor->input_count || descriptor->states == NULL ||
      descriptor->phases != NULL || descriptor->variant_count > 0)
    return 0;
  for (int64_t i = 0; i < count; ++i)
    if (!is_right(descriptor, i))
      return i;
  return -1;
}
