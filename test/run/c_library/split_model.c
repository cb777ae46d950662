/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Runs the model of parts.h on stdin twice, in a context each, and writes what the last gives. */
#include "parts.h"

#include <stdio.h>
#include <stdlib.h>

int main(void) {
  float *x = malloc(parts_x_bytes), *y = malloc(parts_y_bytes);
  if (fread(x, 1, parts_x_bytes, stdin) != parts_x_bytes)
    return 2;
  for (int i = 0; i < 2; ++i) {
    parts_context *context = parts_create(1);
    if (context == NULL ||
        parts_run(context, &(parts_inputs){.x = x}, &(parts_outputs){.y = y}) != 0) {
      fprintf(stderr, "%s\n", parts_error());
      return 1;
    }
    parts_destroy(context);
  }
  return fwrite(y, 1, parts_y_bytes, stdout) != parts_y_bytes;
}
