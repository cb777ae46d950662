/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reads a plan, and the same with each byte changed and each of its beginnings: prints how many are
 * taken, and the messages of the others. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static const int64_t bytes[] = {8 * 64 * 4, 64 * 32 * 4, 8 * 32 * 4};

static int taken, refused;

static void read_plan(const uint8_t *data, int64_t count) {
  static const braid_device_v1 device = {.name = "gpu:0"};
  static braid_function_v1 function = {.input_count = 2, .output_count = 1, .bytes = bytes};
  static braid_model_v2 model = {.device_count = 1, .devices = &device, .function_count = 1};
  function.name = "cluster_0";
  function.arena_bytes = 1024;
  model.functions = &function;
  braid_device_model described = {&model, 0, NULL};
  char error[256] = "";
  uint8_t *exact = malloc((size_t)count + 1); /* so that what is behind it is not there */
  memcpy(exact, data, (size_t)count);
  plan *found = braid_cuda_read_plan(&described, exact, count, error, sizeof error);
  free(exact);
  if (found != NULL)
    ++taken;
  else {
    ++refused;
    puts(error);
  }
  braid_cuda_free_plan(found);
}

int main(int argc, char **argv) {
  static uint8_t data[MOST];
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (file == NULL)
    return 2;
  int64_t count = (int64_t)fread(data, 1, sizeof data, file);
  fclose(file);
  read_plan(data, count);
  if (taken != 1)
    return 1;
  for (int64_t i = 0; i < count; ++i) {
    read_plan(data, i);
    for (int bit = 0; bit < 8; ++bit) {
      data[i] ^= (uint8_t)(1 << bit);
      read_plan(data, count);
      data[i] ^= (uint8_t)(1 << bit);
    }
  }
  printf("%d taken, %d refused\n", taken, refused);
  return 0;
}
