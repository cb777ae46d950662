/* Reads the input of the net from a file, runs the net, writes its output to another file. */
#include "net.h"

#include <stdio.h>

static float x[net_x_bytes / sizeof(float)];
static float y[net_y_bytes / sizeof(float)];

int main(int argc, char **argv) {
  FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
  if (in == NULL || fread(x, 1, net_x_bytes, in) != net_x_bytes)
    return 2;
  fclose(in);
  net_context *context = net_create(2);
  const net_inputs inputs = {x};
  const net_outputs outputs = {y};
  if (context == NULL || net_run(context, &inputs, &outputs) != 0) {
    fprintf(stderr, "%s\n", net_error());
    return 1;
  }
  net_destroy(context);
  FILE *out = fopen(argv[2], "wb");
  if (out == NULL || fwrite(y, 1, net_y_bytes, out) != net_y_bytes)
    return 2;
  return fclose(out) == 0 ? 0 : 2;
}
