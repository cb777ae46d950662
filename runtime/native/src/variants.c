/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which code of a model runs for which shapes of its inputs. */
#include "internal.h"
#include "message.h"

enum { NAME_BYTES = 80, SIZES_BYTES = 256 };

bool braid_read_sizes(const braid_model_v2 *model, const int64_t *const *input_shapes,
                      int64_t *sizes) {
  for (int64_t dim = 0; dim < model->dim_count; ++dim)
    sizes[dim] = -1;
  for (int64_t i = 0; i < model->input_count; ++i) {
    const braid_tensor_v2 *input = &model->inputs[i];
    for (int64_t d = 0; input->dims != NULL && d < input->rank; ++d) {
      int64_t dim = input->dims[d];
      if (dim < 0)
        continue;
      if (sizes[dim] >= 0 && sizes[dim] != input_shapes[i][d]) {
        braid_set_error("dim '%s' is %lld in input '%s', and %lld in an input before it",
                        model->dims[dim].name, (long long)input_shapes[i][d], input->name,
                        (long long)sizes[dim]);
        return false;
      }
      sizes[dim] = input_shapes[i][d];
    }
  }
  return true;
}

static bool takes(const braid_model_v2 *model, const braid_variant_v2 *variant,
                  const int64_t *sizes) {
  for (int64_t dim = 0; dim < model->dim_count; ++dim) {
    int64_t least = model->dims[dim].padded_from;
    bool padded = least > 0 && sizes[dim] >= least && sizes[dim] < variant->sizes[dim];
    if (sizes[dim] != variant->sizes[dim] && !padded)
      return false;
  }
  return true;
}

static double volume(const braid_model_v2 *model, const braid_variant_v2 *variant) {
  double product = 1.0;
  for (int64_t dim = 0; dim < model->dim_count; ++dim)
    product *= (double)variant->sizes[dim];
  return product;
}

void braid_append_sizes(const braid_model_v2 *model, const int64_t *sizes,
                        struct braid_message *message) {
  for (int64_t dim = 0; dim < model->dim_count; ++dim) {
    const char *name = model->dims[dim].name;
    braid_append(message, "%s%.*s=%lld", dim ? "," : "", braid_precision(name, NAME_BYTES), name,
                 (long long)sizes[dim]);
  }
}

static void report_none(const braid_model_v2 *model, const int64_t *sizes) {
  char asked[SIZES_BYTES] = "", known[2 * SIZES_BYTES] = "";
  braid_message message = braid_message_in(asked, sizeof asked);
  braid_append_sizes(model, sizes, &message);
  message = braid_message_in(known, sizeof known);
  for (int64_t i = 0; i < model->variant_count && !message.is_cut; ++i) {
    braid_append(&message, "%s", i ? " " : "");
    braid_append_sizes(model, model->variants[i].sizes, &message);
  }
  braid_set_error("the model has no variant for %s; it has %s", asked, known);
}

const braid_variant_v2 *braid_select_variant(const braid_model_v2 *model,
                                             const int64_t *const *input_shapes, int64_t *sizes) {
  if (!braid_read_sizes(model, input_shapes, sizes))
    return NULL;
  const braid_variant_v2 *best = NULL;
  for (int64_t i = 0; i < model->variant_count; ++i) {
    const braid_variant_v2 *variant = &model->variants[i];
    if (takes(model, variant, sizes) &&
        (best == NULL || volume(model, variant) < volume(model, best)))
      best = variant;
  }
  if (best == NULL)
    report_none(model, sizes);
  return best;
}

void braid_resize(const braid_tensor_v2 *tensor, const int64_t *shape, const int64_t *sizes,
                  int64_t *result) {
  for (int64_t d = 0; d < tensor->rank; ++d) {
    int64_t dim = tensor->dims != NULL ? tensor->dims[d] : -1;
    result[d] = dim >= 0 ? sizes[dim] : shape[d];
  }
}
