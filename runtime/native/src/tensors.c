/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Row-major tensors of any rank. */
#include "internal.h"

#include <string.h>

enum { MOST_ELEMENT_BYTES = 16 };

/* Bytes of an element, by ONNX's TensorProto.DataType; types of less than a byte take one. */
static size_t element_bytes(int64_t dtype) {
  switch (dtype) {
  case 4:  /* uint16 */
  case 5:  /* int16 */
  case 10: /* float16 */
  case 16: /* bfloat16 */
    return 2;
  case 1:  /* float */
  case 6:  /* int32 */
  case 12: /* uint32 */
    return 4;
  case 7:  /* int64 */
  case 11: /* double */
  case 13: /* uint64 */
  case 14: /* complex64 */
    return 8;
  case 15: /* complex128 */
    return 16;
  default:
    return 1;
  }
}

size_t braid_tensor_bytes(const braid_tensor_v2 *tensor, const int64_t *shape) {
  size_t bytes = element_bytes(tensor->dtype);
  for (int64_t d = 0; d < tensor->rank; ++d)
    bytes *= (size_t)shape[d];
  return bytes;
}

bool braid_is_addressable(int64_t rank, const int64_t *shape) {
  int64_t elements = MOST_ELEMENT_BYTES;
  for (int64_t d = 0; d < rank; ++d)
    if (__builtin_mul_overflow(elements, shape[d] > 0 ? shape[d] : 1, &elements))
      return false;
  return true;
}

bool braid_same_shape(int64_t rank, const int64_t *left, const int64_t *right) {
  for (int64_t d = 0; d < rank; ++d)
    if (left[d] != right[d])
      return false;
  return true;
}

static void copy_dims(int64_t rank, char *to, const int64_t *to_shape, size_t to_bytes,
                      const char *from, const int64_t *from_shape, size_t from_bytes) {
  if (to_bytes == 0 || from_bytes == 0)
    return;
  if (rank == 0) {
    memcpy(to, from, to_bytes);
    return;
  }
  int64_t common = to_shape[0] < from_shape[0] ? to_shape[0] : from_shape[0];
  size_t to_stride = to_bytes / (size_t)to_shape[0];
  size_t from_stride = from_bytes / (size_t)from_shape[0];
  if (braid_same_shape(rank - 1, to_shape + 1, from_shape + 1)) {
    memcpy(to, from, (size_t)common * to_stride);
    return;
  }
  for (int64_t i = 0; i < common; ++i)
    copy_dims(rank - 1, to + (size_t)i * to_stride, to_shape + 1, to_stride,
              from + (size_t)i * from_stride, from_shape + 1, from_stride);
}

void braid_copy_common(const braid_tensor_v2 *tensor, void *to, const int64_t *to_shape,
                       const void *from, const int64_t *from_shape) {
  copy_dims(tensor->rank, to, to_shape, braid_tensor_bytes(tensor, to_shape), from, from_shape,
            braid_tensor_bytes(tensor, from_shape));
}
