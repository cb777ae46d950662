/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Matrices of a warp: `ldmatrix` and `mma.sync`. The last lane to come does it for all. Semantics
 * and the elements that each lane holds: PTX ISA, sections "ldmatrix" and "Matrix Fragments for
 * mma.m16n8k8 / .m16n8k16 / .m16n8k32".
 */
#include "emulator.h"

#include <math.h>
#include <string.h>

static launch *const L = &braid_gpu_current;

static int64_t conflicts;

/* ---- ldmatrix ---- */

enum { ROWS = 8, ROW_BYTES = 16, BANKS_OF_ROWS = 8 };

/* Additional cycles to read 8 rows, each of which is in 4 of the 32 banks. */
static int64_t turns_lost(char *const rows[ROWS]) {
  int64_t count[BANKS_OF_ROWS] = {0}, most = 0;
  for (int row = 0; row < ROWS; ++row) {
    int64_t *own = &count[(uintptr_t)rows[row] / ROW_BYTES % BANKS_OF_ROWS];
    if (++*own > most)
      most = *own;
  }
  return most - 1;
}

/* in: how many matrices, whether they are transposed; address: a row. out: a register a matrix. */
static void load_matrices(exchange *const lanes[WARP], uint32_t members) {
  if (members != 0xffffffffu) {
    braid_gpu_fail("ldmatrix for lanes %#x, expected all", members);
    return;
  }
  int count = (int)lanes[0]->in[0];
  bool transposed = lanes[0]->in[1] != 0;
  for (int matrix = 0; matrix < count; ++matrix) {
    char *rows[ROWS];
    uint16_t elements[ROWS][ROWS];
    for (int row = 0; row < ROWS; ++row) {
      rows[row] = lanes[ROWS * matrix + row]->address;
      memcpy(elements[row], rows[row], ROW_BYTES);
    }
    conflicts += turns_lost(rows);
    for (int lane = 0; lane < WARP; ++lane) {
      int outer = lane / 4, inner = lane % 4 * 2;
      uint32_t low = transposed ? elements[inner][outer] : elements[outer][inner];
      uint32_t high = transposed ? elements[inner + 1][outer] : elements[outer][inner + 1];
      lanes[lane]->out[matrix] = low | high << 16;
    }
  }
}

static exchange loaded(char *row, int count, bool transposed) {
  exchange own = {.name = "ldmatrix", .run = load_matrices, .members = 0xffffffffu};
  own.in[0] = (uint32_t)count;
  own.in[1] = transposed;
  own.address = row;
  if (L->thread % WARP < ROWS * count)
    braid_gpu_read(row, ROW_BYTES, ROW_BYTES);
  braid_gpu_exchange(&own);
  return own;
}

#define LDMATRIX(count, suffix, transposed)                                                        \
  EMULATED void braid_gpu_ldmatrix_sync_aligned_m8n8_x##count##suffix##_b16_p3(uint32_t *results,  \
                                                                               char *row) {        \
    exchange own = loaded(row, count, transposed);                                                 \
    memcpy(results, own.out, count * sizeof *results);                                             \
  }

LDMATRIX(2, , false)
LDMATRIX(4, , false)
LDMATRIX(2, _trans, true)
LDMATRIX(4, _trans, true)

/* Turns that reading matrices has lost to conflicts of banks since it was asked last. */
EMULATED int64_t braid_gpu_bank_conflicts(void) {
  int64_t since = conflicts;
  conflicts = 0;
  return since;
}

/* ---- mma.sync ---- */

typedef enum number { BF16, F16, TF32, S8, U8 } number;

enum { M = 16, N = 8, MOST_K = 32, A_REGISTERS = 4, B_REGISTERS = 2, C_REGISTERS = 4 };

static int in_register(number kind) {
  return kind == TF32 ? 1 : kind == BF16 || kind == F16 ? 2 : 4;
}

float braid_gpu_float_of_half(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff, wide;
  float value;
  if (rest >= 0x7c00) {
    wide = sign | 0x7f800000 | (rest & 0x3ff) << 13;
  } else if (rest >= 0x400) {
    wide = sign | ((rest << 13) + ((127 - 15) << 23));
  } else {
    value = (float)rest * 0x1p-24f;
    return sign ? -value : value;
  }
  memcpy(&value, &wide, sizeof value);
  return value;
}

static float float_at(uint32_t bits, int place, number kind) {
  uint16_t half = (uint16_t)(bits >> 16 * place);
  if (kind == F16)
    return braid_gpu_float_of_half(half);
  uint32_t wide = kind == BF16 ? (uint32_t)half << 16 : bits & 0xffffe000;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

static int32_t integer_at(uint32_t bits, int place, number kind) {
  uint8_t byte = (uint8_t)(bits >> 8 * place);
  return kind == S8 ? (int8_t)byte : byte;
}

#define FRAGMENTS(type, element)                                                                   \
  type a[M][MOST_K], b[N][MOST_K];                                                                 \
  number a_kind = (number)lanes[0]->in[10], b_kind = (number)lanes[0]->in[11];                     \
  int per = in_register(a_kind), depth = 8 * per;                                                  \
  for (int lane = 0; lane < WARP; ++lane)                                                          \
    for (int place = 0; place < per; ++place) {                                                    \
      int row = lane / 4, k = lane % 4 * per + place;                                              \
      for (int n = 0; n < A_REGISTERS; ++n)                                                        \
        a[row + 8 * (n % 2)][k + 4 * per * (n / 2)] = element(lanes[lane]->in[n], place, a_kind);  \
      for (int n = 0; n < B_REGISTERS; ++n)                                                        \
        b[row][k + 4 * per * n] = element(lanes[lane]->in[A_REGISTERS + n], place, b_kind);        \
    }

/* in: A, B, C, the types of A and of B; out: the sum. */
static void multiply_floats(exchange *const lanes[WARP], uint32_t members) {
  if (members != 0xffffffffu) {
    braid_gpu_fail("mma for lanes %#x, expected all", members);
    return;
  }
  FRAGMENTS(float, float_at)
  for (int lane = 0; lane < WARP; ++lane)
    for (int n = 0; n < C_REGISTERS; ++n) {
      float sum;
      memcpy(&sum, &lanes[lane]->in[A_REGISTERS + B_REGISTERS + n], sizeof sum);
      const float *left = a[lane / 4 + 8 * (n / 2)], *right = b[lane % 4 * 2 + n % 2];
      for (int k = 0; k < depth; ++k)
        sum += left[k] * right[k];
      memcpy(&lanes[lane]->out[n], &sum, sizeof sum);
    }
}

static void multiply_integers(exchange *const lanes[WARP], uint32_t members) {
  if (members != 0xffffffffu) {
    braid_gpu_fail("mma for lanes %#x, expected all", members);
    return;
  }
  FRAGMENTS(int32_t, integer_at)
  for (int lane = 0; lane < WARP; ++lane)
    for (int n = 0; n < C_REGISTERS; ++n) {
      uint32_t sum = lanes[lane]->in[A_REGISTERS + B_REGISTERS + n];
      const int32_t *left = a[lane / 4 + 8 * (n / 2)], *right = b[lane % 4 * 2 + n % 2];
      for (int k = 0; k < depth; ++k)
        sum += (uint32_t)(left[k] * right[k]);
      lanes[lane]->out[n] = sum;
    }
}

static void multiply(uint32_t *results, const uint32_t operands[10], number a, number b) {
  exchange own = {.name = "mma", .members = 0xffffffffu};
  own.run = a == S8 || a == U8 ? multiply_integers : multiply_floats;
  memcpy(own.in, operands, 10 * sizeof *operands);
  own.in[10] = a;
  own.in[11] = b;
  braid_gpu_exchange(&own);
  memcpy(results, own.out, C_REGISTERS * sizeof *results);
}

#define MMA(name, sum, a_kind, b_kind)                                                             \
  EMULATED void braid_gpu_mma_##name(uint32_t *results, uint32_t a0, uint32_t a1, uint32_t a2,     \
                                     uint32_t a3, uint32_t b0, uint32_t b1, sum c0, sum c1,        \
                                     sum c2, sum c3) {                                             \
    sum c[C_REGISTERS] = {c0, c1, c2, c3};                                                         \
    uint32_t operands[10] = {a0, a1, a2, a3, b0, b1};                                              \
    memcpy(operands + A_REGISTERS + B_REGISTERS, c, sizeof c);                                     \
    multiply(results, operands, a_kind, b_kind);                                                   \
  }

MMA(m16n8k16_row_col_bf16, float, BF16, BF16)
MMA(m16n8k16_row_col_f32_f32, float, F16, F16)
MMA(m16n8k8_row_col_tf32, float, TF32, TF32)
MMA(m16n8k32_row_col_s8, uint32_t, S8, S8)
MMA(m16n8k32_row_col_u8, uint32_t, U8, U8)
MMA(m16n8k32_row_col_s8_u8, uint32_t, S8, U8)
MMA(m16n8k32_row_col_u8_s8, uint32_t, U8, S8)

/* ---- Functions that are instructions ---- */

/* To the nearest number with 10 bits behind the point, ties away from zero. */
EMULATED uint32_t braid_gpu_f2tf32_rna(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000) == 0x7f800000) /* infinite, or not a number */
    return (bits & 0x7fffff) != 0 ? 0x7fffffff : bits;
  return (bits + 0x1000) & 0xffffe000;
}

EMULATED void braid_gpu_ex2_approx_ftz_f32(float *result, float x) {
  float power = exp2f(x);
  *result = power < 0x1p-126f ? 0 : power;
}
