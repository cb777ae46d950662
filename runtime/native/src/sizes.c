/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Every sum and product is checked. A step that fails has no value, and steps that use it fail for
 * the same reason, but for the part that a select does not choose: so both parts can be computed
 * before it, and there are no jumps.
 *
 * Floats are kept as f64. An f32 operation is computed in f64 and rounded once more, which gives
 * the same bits. This file is compiled without contraction of products and sums (CMakeLists.txt).
 */
#include "sizes.h"

#include <string.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
  OVERFLOW,
  NUMBER,
  SYMBOL,
  ADD,
  MULTIPLY,
  FLOORDIV,
  MINIMUM,
  MAXIMUM,
  SELECT_ZERO,
  SELECT_NOT_POSITIVE,
  FLOAT_OF,
  FLOAT_NUMBER,
  FLOAT_ADD,
  FLOAT_SUB,
  FLOAT_MUL,
  FLOAT_DIV,
  FLOAT_SQRT,
  FLOAT_FLOOR,
  FLOAT_CEIL,
  FLOAT_ROUND,
  FLOAT_TRUNC,
  FLOAT_CONVERT,
  FLOOR,
  CEIL,
  ROUND,
  TRUNC,
  OPERATION_COUNT
};

/* ---- Checking ---- */

static bool gives_float(const braid_size_step *step) {
  return step->operation >= FLOAT_OF && step->operation <= FLOAT_CONVERT;
}

/* The number of operands, which are a, b and c in this order. */
static int operand_count(int64_t operation) {
  switch (operation) {
  case OVERFLOW:
  case NUMBER:
  case SYMBOL:
  case FLOAT_NUMBER:
    return 0;
  case ADD:
  case MULTIPLY:
  case FLOORDIV:
  case MINIMUM:
  case MAXIMUM:
  case FLOAT_ADD:
  case FLOAT_SUB:
  case FLOAT_MUL:
  case FLOAT_DIV:
    return 2;
  case SELECT_ZERO:
  case SELECT_NOT_POSITIVE:
    return 3;
  default:
    return 1;
  }
}

static bool check_step(const braid_size_program *program, int64_t number) {
  const braid_size_step *step = &program->steps[number];
  if (step->operation < 0 || step->operation >= OPERATION_COUNT)
    return false;
  if (step->operation == SYMBOL && (step->a < 0 || step->a >= program->symbol_count))
    return false;
  bool is_rounded = gives_float(step) && step->operation != FLOAT_NUMBER;
  if (is_rounded && step->c != 32 && step->c != 64)
    return false;
  bool takes_floats = step->operation >= FLOAT_ADD;
  const int64_t operands[3] = {step->a, step->b, step->c};
  for (int i = 0; i < operand_count(step->operation); ++i)
    if (operands[i] < 0 || operands[i] >= number ||
        gives_float(&program->steps[operands[i]]) != takes_floats)
      return false;
  return true;
}

bool braid_check_sizes(const braid_size_program *program) {
  for (int64_t i = 0; i < program->step_count; ++i)
    if (!check_step(program, i))
      return false;
  for (int64_t i = 0; i < program->result_count; ++i) {
    int64_t result = program->results[i];
    if (result < 0 || result >= program->step_count || gives_float(&program->steps[result]))
      return false;
  }
  return true;
}

/* ---- Floats ---- */

static double rounded_to(double value, int64_t width) {
  return width == 32 ? (double)(float)value : value;
}

static double square_root(double value) {
#if defined(__aarch64__)
  return vget_lane_f64(vsqrt_f64(vdup_n_f64(value)), 0);
#elif defined(__x86_64__)
  __m128d vector = _mm_set_sd(value);
  return _mm_cvtsd_f64(_mm_sqrt_sd(vector, vector));
#else
  return __builtin_sqrt(value);
#endif
}

/* The whole number that a float is rounded to, as a float; `operation` is FLOOR to TRUNC. */
static double whole_number(int64_t operation, double value) {
  if (!(value > -0x1p52 && value < 0x1p52)) /* it is whole, infinite or no number */
    return value;
  double towards_zero = (double)(int64_t)value, low = towards_zero - (towards_zero > value);
  double result = towards_zero;
  if (operation == FLOOR)
    result = low;
  else if (operation == CEIL)
    result = low + (low < value);
  else if (operation == ROUND) {
    double rest = value - low;
    bool is_odd = ((int64_t)low & 1) != 0;
    result = low + (rest > 0.5 || (rest == 0.5 && is_odd));
  }
  return result == 0 ? value * 0.0 : result; /* a zero keeps the sign */
}

static double compute_float(int64_t operation, double a, double b) {
  switch (operation) {
  case FLOAT_ADD:
    return a + b;
  case FLOAT_SUB:
    return a - b;
  case FLOAT_MUL:
    return a * b;
  case FLOAT_DIV:
    return a / b;
  case FLOAT_SQRT:
    return square_root(a);
  case FLOAT_CONVERT:
    return a;
  default:
    return whole_number(operation - FLOAT_FLOOR + FLOOR, a);
  }
}

/* ---- Evaluating ---- */

static braid_size_value integer(int64_t value) { return (braid_size_value){.integer = value}; }

static braid_size_value real(double value) { return (braid_size_value){.real = value}; }

static braid_size_value failure(int64_t reason) { return (braid_size_value){.failure = reason}; }

static braid_size_value quotient(int64_t a, int64_t b) {
  if (b == 0)
    return failure(BRAID_SIZE_DIVISION_BY_ZERO);
  if (a == INT64_MIN && b == -1)
    return failure(BRAID_SIZE_OVERFLOW);
  int64_t towards_zero = a / b;
  return integer(towards_zero - (a % b != 0 && (a < 0) != (b < 0)));
}

static braid_size_value compute_integer(int64_t operation, int64_t a, int64_t b) {
  int64_t result;
  switch (operation) {
  case ADD:
    return __builtin_add_overflow(a, b, &result) ? failure(BRAID_SIZE_OVERFLOW) : integer(result);
  case MULTIPLY:
    return __builtin_mul_overflow(a, b, &result) ? failure(BRAID_SIZE_OVERFLOW) : integer(result);
  case FLOORDIV:
    return quotient(a, b);
  case MINIMUM:
    return integer(a < b ? a : b);
  default:
    return integer(a < b ? b : a);
  }
}

static braid_size_value rounded_to_integer(int64_t operation, double value) {
  double whole = whole_number(operation, value);
  if (!(whole >= -0x1p63 && whole < 0x1p63))
    return failure(BRAID_SIZE_NO_INTEGER);
  return integer((int64_t)whole);
}

static braid_size_value evaluate_step(const braid_size_step *step, const int64_t *symbols,
                                      const braid_size_value *values) {
  braid_size_value number = real(0.0);
  switch (step->operation) {
  case OVERFLOW:
    return failure(BRAID_SIZE_OVERFLOW);
  case NUMBER:
    return integer(step->a);
  case SYMBOL:
    return integer(symbols[step->a]);
  case FLOAT_NUMBER:
    memcpy(&number.real, &step->a, sizeof number.real);
    return number;
  case SELECT_ZERO:
  case SELECT_NOT_POSITIVE: {
    const braid_size_value *size = &values[step->a];
    if (size->failure != 0)
      return *size;
    bool holds = step->operation == SELECT_ZERO ? size->integer == 0 : size->integer <= 0;
    return values[holds ? step->b : step->c];
  }
  }
  int count = operand_count(step->operation);
  braid_size_value a = values[step->a], b = count > 1 ? values[step->b] : a;
  if (a.failure != 0 || b.failure != 0)
    return a.failure != 0 ? a : b;
  if (step->operation == FLOAT_OF) /* rounded once: an f64 between would be another number */
    return real(step->c == 32 ? (double)(float)a.integer : (double)a.integer);
  if (step->operation >= FLOOR)
    return rounded_to_integer(step->operation, a.real);
  if (step->operation >= FLOAT_ADD)
    return real(rounded_to(compute_float(step->operation, a.real, b.real), step->c));
  return compute_integer(step->operation, a.integer, b.integer);
}

int64_t braid_evaluate_sizes(const braid_size_program *program, const int64_t *symbols,
                             braid_size_value *values, int64_t *sizes, int64_t *failing) {
  for (int64_t i = 0; i < program->step_count; ++i)
    values[i] = evaluate_step(&program->steps[i], symbols, values);
  int64_t reason = 0;
  for (int64_t i = 0; i < program->result_count; ++i) {
    const braid_size_value *value = &values[program->results[i]];
    sizes[i] = value->failure == 0 ? value->integer : 0;
    if (value->failure != 0 && reason == 0) {
      reason = value->failure;
      *failing = i;
    }
  }
  return reason;
}
