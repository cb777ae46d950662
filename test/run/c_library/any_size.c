/* any_size BATCH...: runs the library `twice`, y = x after x, at sizes that it was not made for. */
#include "twice.h"

#include <stdio.h>
#include <stdlib.h>

static int run(twice_context *context, int64_t batch) {
  twice_dims dims = {.batch = batch};
  int64_t bytes = twice_y_bytes(context, &dims);
  if (bytes < 0 || (size_t)bytes != 2 * twice_x_bytes(&dims))
    return 1;
  float *x = calloc(1, twice_x_bytes(&dims) + 1), *y = calloc(1, (size_t)bytes + 1);
  for (int64_t i = 0; i < 8 * batch; ++i)
    x[i] = (float)i;
  int status = twice_run(context, &dims, &(twice_inputs){.x = x}, &(twice_outputs){.y = y});
  for (int64_t i = 0; status == 0 && i < 16 * batch; ++i)
    status = y[i] != (float)(i % (8 * batch));
  const int64_t *shape = twice_output_shape(context, 0);
  status |= shape == NULL || shape[0] != 2 * batch || shape[1] != 8;
  free(x);
  free(y);
  return status;
}

int main(int argc, char **argv) {
  twice_context *context = twice_create(1);
  if (context == NULL)
    return 1;
  int status = 0;
  for (int i = 1; i < argc && status == 0; ++i)
    if ((status = run(context, atoll(argv[i]))) != 0)
      fprintf(stderr, "%s: %s\n", argv[i], twice_error());
  twice_destroy(context);
  return status;
}
