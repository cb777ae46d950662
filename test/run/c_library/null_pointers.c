/* Calls each function of two models with NULL where it is not allowed, and prints the errors. */
#include "classify.h"
#include "scale.h"

#include <stdio.h>

static int failures;

static void expect(int failed, const char *said) {
  printf("%s\n", said);
  failures += !failed;
}

int main(void) {
  float x[24] = {0}, rows[16] = {0}, scaled[16];
  int64_t numbers[5] = {0}, sums[5];
  bool greater[24];
  classify_inputs in = {x, numbers};
  classify_outputs out = {greater, sums};
  classify_context *context = classify_create(1);
  expect(classify_run(NULL, &in, &out), classify_error());
  expect(classify_run(context, NULL, &out), classify_error());
  expect(classify_run(context, &in, NULL), classify_error());
  in.m_int = NULL;
  expect(classify_run(context, &in, &out), classify_error());
  in.m_int = numbers;
  out.m_2nd = NULL;
  expect(classify_run(context, &in, &out), classify_error());
  out.m_2nd = greater;
  expect(classify_output_shape(NULL, 0) == NULL, classify_error());
  failures += classify_run(context, &in, &out) != 0;
  classify_destroy(context);
  classify_destroy(NULL);

  scale_context *other = scale_create(1);
  scale_inputs of = {rows};
  scale_outputs to = {scaled};
  scale_dims two = {2};
  expect(scale_run(other, NULL, &of, &to), scale_error());
  expect(scale_run(NULL, &two, &of, &to), scale_error());
  expect(scale_run(other, &two, &of, NULL), scale_error());
  failures += scale_run(other, &two, &of, &to) != 0;
  scale_destroy(other);
  return failures;
}
