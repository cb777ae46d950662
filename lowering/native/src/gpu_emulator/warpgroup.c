/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Products of 128 threads, `wgmma`: the last thread to come multiplies for all. Semantics, layouts
 * of matrices in shared memory and fragments: PTX ISA, "Asynchronous Warpgroup Level Matrix
 * Instructions". Until they are waited for, the sums stay here and registers hold their names, so
 * that earlier uses compute with NaN.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum {
  GROUP = 128,
  M = 64,
  MAX_N = 256,
  MAX_K = 32,
  MAX_OPEN = 4, /* accumulators of a group that are not waited for */
  MAX_REGISTERS = MAX_N / 2,
  FRAGMENT = 4, /* registers of A, each of two elements */
  MAX_COMMITS = 64,
  ADDRESS_BITS = 18,
  CHUNK = 16,
  CORE_ROWS = 8,
  LINE = 128
};

typedef enum number { BF16, F16, TF32, S8, U8 } number;

typedef union sum {
  float f;
  uint32_t i;
} sum;

typedef struct accumulator {
  bool open;
  uint32_t group; /* of commits, that its last product is in */
  int n;
  sum values[M][MAX_N];
} accumulator;

typedef struct product {
  const char *shape;
  int n;
  number a_kind, b_kind;
  bool b_rows;      /* B lies by rows of columns: "N-major" */
  bool a_registers; /* A is in registers, and `a` says nothing */
  bool adds;        /* to what the sums were before */
  uint64_t a, b;
} product;

typedef struct warpgroup {
  int arrived;
  product what;
  sum *registers[GROUP];
  uint32_t fragments[GROUP][FRAGMENT];
  accumulator *open[MAX_OPEN];
  uint32_t products;          /* issued so far: shadows of an earlier launch have numbers too */
  uint32_t commits;           /* in this block */
  uint32_t last[MAX_COMMITS]; /* product of a commit */
} warpgroup;

typedef struct waiter {
  uint32_t commits;
  bool fenced;
} waiter;

static warpgroup groups[MAX_WARPGROUPS];
static waiter waiters[MAX_THREADS];

static launch *const L = &braid_gpu_current;

void braid_gpu_start_warpgroups(void) {
  for (int g = 0; g < MAX_WARPGROUPS; ++g) {
    groups[g].arrived = 0;
    groups[g].commits = 0;
    for (int n = 0; n < MAX_OPEN; ++n)
      if (groups[g].open[n] != NULL)
        groups[g].open[n]->open = false;
  }
  memset(waiters, 0, sizeof waiters);
}

void braid_gpu_free_warpgroups(void) {
  for (int g = 0; g < MAX_WARPGROUPS; ++g) {
    for (int n = 0; n < MAX_OPEN; ++n)
      free(groups[g].open[n]);
    groups[g] = (warpgroup){.products = groups[g].products};
  }
}

uint32_t braid_gpu_products(int group) { return groups[group].products; }

/* ---- Matrices in shared memory ---- */

static int depth_of(number kind) {
  return kind == TF32 ? 8 : kind == BF16 || kind == F16 ? 16 : 32;
}

/* Bytes of a line that chunks are exchanged in, as a descriptor says; 0 if in none. */
static int swizzled_bytes(uint64_t descriptor) {
  int mode = (int)(descriptor >> 62);
  return mode == 0 ? 0 : 2 * LINE >> mode;
}

/* The byte of a matrix at a line (a row of A, a column of B) and a byte along depths. */
static char *element(uint64_t descriptor, int line, int byte, bool by_lines, int size) {
  int width = swizzled_bytes(descriptor);
  int64_t start = (int64_t)(descriptor & 0x3fff) << 4;
  int64_t leading = (int64_t)(descriptor >> 16 & 0x3fff) << 4;
  int64_t stride = (int64_t)(descriptor >> 32 & 0x3fff) << 4;
  int64_t at = start;
  if (by_lines) {
    int k = byte / size, per = width / size;
    at += line / per * leading + k / CORE_ROWS * stride + k % CORE_ROWS * width;
    at += line % per * size + byte % size;
  } else {
    at += line / CORE_ROWS * stride + line % CORE_ROWS * width + byte;
  }
  at ^= at / LINE % (width / CHUNK) * CHUNK;
  char *found = braid_gpu_shared_at(at & ((1 << ADDRESS_BITS) - 1), ADDRESS_BITS);
  if (found == NULL)
    braid_gpu_fail("wgmma reads at byte %lld, which is not in shared memory", (long long)at);
  return found;
}

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static float float_of_16_bits(uint16_t bits, number kind) {
  return kind == F16 ? braid_gpu_float_of_half(bits) : float_of_bits((uint32_t)bits << 16);
}

static float float_of(const char *at, number kind) {
  if (kind == TF32) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return float_of_bits(bits & 0xffffe000);
  }
  uint16_t half;
  memcpy(&half, at, sizeof half);
  return float_of_16_bits(half, kind);
}

/* Checks the line of a matrix for all warps, and notes that the product reads it. */
static void check_line(int group, uint64_t descriptor, int line, bool by_lines, int size) {
  for (int byte = 0; byte < MAX_K; byte += by_lines ? size : 16) {
    char *at = element(descriptor, line, byte, by_lines, size);
    if (at == NULL)
      return;
    int thread = L->thread;
    for (int warp = 0; warp < GROUP / WARP; ++warp) {
      L->thread = group * GROUP + warp * WARP;
      braid_gpu_async_read(at, by_lines ? size : 16);
    }
    L->thread = thread;
    braid_gpu_set_product(at, by_lines ? size : 16, group, groups[group].products);
  }
}

typedef struct matrices {
  sum a[M][MAX_K];
  sum b[MAX_K][MAX_N];
} matrices;

static int row_of(int thread, int place) {
  return thread / WARP * 16 + thread % WARP / 4 + place / 2 % 2 * 8;
}

static int column_of(int thread, int place) { return place / 4 * 8 + thread % 4 * 2 + place % 2; }

/* Elements of A lie in registers as sums do. */
static void read_fragments(const warpgroup *own, matrices *into) {
  for (int t = 0; t < GROUP; ++t)
    for (int place = 0; place < 2 * FRAGMENT; ++place) {
      uint16_t half = (uint16_t)(own->fragments[t][place / 2] >> place % 2 * 16);
      into->a[row_of(t, place)][column_of(t, place)].f = float_of_16_bits(half, own->what.a_kind);
    }
}

static void read_matrix(int group, const product *of, bool is_b, matrices *into) {
  number kind = is_b ? of->b_kind : of->a_kind;
  uint64_t descriptor = is_b ? of->b : of->a;
  int depth = depth_of(kind), size = MAX_K / depth, lines = is_b ? of->n : M;
  bool by_lines = is_b && of->b_rows;
  bool wide = by_lines || swizzled_bytes(descriptor) == LINE;
  if (swizzled_bytes(descriptor) == 0 || !wide || (descriptor >> 49 & 7) != 0) {
    braid_gpu_fail("wgmma of a matrix that is not swizzled by 128 bytes, or by rows by 64 or 32: "
                   "descriptor %#llx",
                   (unsigned long long)descriptor);
    return;
  }
  for (int line = 0; line < lines; ++line) {
    check_line(group, descriptor, line, by_lines, size);
    for (int k = 0; k < depth; ++k) {
      const char *at = element(descriptor, line, k * size, by_lines, size);
      sum value;
      if (kind == S8)
        value.i = (uint32_t)(int8_t)*at;
      else if (kind == U8)
        value.i = (uint8_t)*at;
      else
        value.f = float_of(at, kind);
      *(is_b ? &into->b[k][line] : &into->a[line][k]) = value;
    }
  }
}

/* ---- Accumulators and the registers that name them ---- */

/* A quiet NaN with the number of the accumulator and of the register. */
static uint32_t name_of(int number, int place) {
  return 0xffe00000u | (uint32_t)number << 8 | (uint32_t)place;
}

static int named(const sum *registers, int count) {
  int number = (int)(registers[0].i >> 8 & 0xff);
  if (number >= MAX_OPEN)
    return -1;
  for (int place = 0; place < count; ++place)
    if (registers[place].i != name_of(number, place))
      return -1;
  return number;
}

/* The open accumulator that the registers name, or a new one with their values. */
static int accumulator_for(warpgroup *own, int first, int count) {
  int number = own->what.adds ? named(own->registers[0], count) : -1;
  if (number >= 0 && own->open[number] != NULL && own->open[number]->open)
    return number;
  for (number = 0; number < MAX_OPEN && own->open[number] != NULL && own->open[number]->open;)
    ++number;
  if (number == MAX_OPEN) {
    braid_gpu_fail("wgmma of more than %d sums that are not waited for", MAX_OPEN);
    return -1;
  }
  if (own->open[number] == NULL)
    own->open[number] = malloc(sizeof *own->open[number]);
  if (own->open[number] == NULL) {
    braid_gpu_fail("out of memory for sums");
    return -1;
  }
  own->open[number]->open = true;
  for (int t = 0; t < GROUP; ++t) {
    if (!waiters[first + t].fenced)
      braid_gpu_fail("wgmma of registers without wgmma.fence before it");
    for (int place = 0; place < count && own->what.adds; ++place)
      own->open[number]->values[row_of(t, place)][column_of(t, place)] = own->registers[t][place];
  }
  return number;
}

static void multiply(warpgroup *own, accumulator *into) {
  int group = (int)(own - groups), depth = depth_of(own->what.a_kind), n = own->what.n;
  static matrices read;
  ++own->products;
  if (own->what.a_registers)
    read_fragments(own, &read);
  else
    read_matrix(group, &own->what, false, &read);
  read_matrix(group, &own->what, true, &read);
  bool is_float = own->what.a_kind <= TF32;
  if (!own->what.adds)
    memset(into->values, 0, sizeof into->values);
  for (int row = 0; row < M; ++row)
    for (int k = 0; k < depth; ++k) {
      sum left = read.a[row][k], *total = into->values[row];
      const sum *right = read.b[k];
      if (is_float)
        for (int column = 0; column < n; ++column)
          total[column].f += left.f * right[column].f;
      else
        for (int column = 0; column < n; ++column)
          total[column].i += left.i * right[column].i;
    }
}

static void run(warpgroup *own) {
  int first = (int)(own - groups) * GROUP, count = own->what.n / 2;
  int number = accumulator_for(own, first, count);
  own->arrived = 0;
  if (number < 0)
    return;
  for (int t = 0; t < GROUP; ++t) {
    bool same = named(own->registers[t], count) == named(own->registers[0], count);
    if (own->what.adds && !same)
      braid_gpu_fail("wgmma of sums that thread %d has used or moved before they were waited for",
                     first + t);
  }
  multiply(own, own->open[number]);
  own->open[number]->group = own->commits;
  own->open[number]->n = own->what.n;
  for (int t = 0; t < GROUP; ++t) {
    for (int place = 0; place < count; ++place)
      own->registers[t][place].i = name_of(number, place);
    if (L->fibers[first + t].state == IN_WARPGROUP)
      L->fibers[first + t].state = READY;
  }
}

static void issue(sum *registers, product what, const uint32_t *fragment) {
  int group = L->thread / GROUP;
  if (group >= MAX_WARPGROUPS || (group + 1) * GROUP > L->threads) {
    braid_gpu_fail("wgmma outside of the first %d whole groups of %d threads", MAX_WARPGROUPS,
                   GROUP);
    return;
  }
  warpgroup *own = &groups[group];
  if (own->arrived > 0 && memcmp(&own->what, &what, sizeof what) != 0)
    braid_gpu_fail("wgmma of other matrices than other threads of the group multiply");
  own->what = what;
  own->registers[L->thread % GROUP] = registers;
  if (fragment != NULL) {
    if (!waiters[L->thread].fenced)
      braid_gpu_fail("wgmma of registers without wgmma.fence before it");
    memcpy(own->fragments[L->thread % GROUP], fragment, sizeof own->fragments[0]);
  }
  if (++own->arrived == GROUP)
    run(own);
  else
    braid_gpu_wait(IN_WARPGROUP);
}

/* A product without its left operand; products are compared by their bytes. */
static void describe(product *made, int32_t n, int32_t a_kind, int32_t b_kind, uint64_t b,
                     int32_t b_rows, int32_t adds) {
  memset(made, 0, sizeof *made);
  made->n = n;
  made->a_kind = (number)a_kind;
  made->b_kind = (number)b_kind;
  made->b_rows = b_rows != 0;
  made->adds = adds != 0;
  made->b = b;
}

/* `results` are the sums before and after. */
EMULATED void braid_gpu_wgmma(uint32_t *results, uint64_t a, uint64_t b, int32_t n, int32_t a_kind,
                              int32_t b_kind, int32_t a_rows, int32_t b_rows, int32_t adds) {
  product what;
  describe(&what, n, a_kind, b_kind, b, b_rows, adds);
  what.a = a;
  if (a_rows)
    braid_gpu_fail("wgmma of a transposed A");
  issue((sum *)(void *)results, what, NULL);
}

/* The same with A of 16-bit floats in registers. */
EMULATED void braid_gpu_wgmma_registers(uint32_t *results, uint32_t a0, uint32_t a1, uint32_t a2,
                                        uint32_t a3, uint64_t b, int32_t n, int32_t a_kind,
                                        int32_t b_kind, int32_t b_rows, int32_t adds) {
  const uint32_t fragment[FRAGMENT] = {a0, a1, a2, a3};
  product what;
  describe(&what, n, a_kind, b_kind, b, b_rows, adds);
  what.a_registers = true;
  if (what.a_kind > F16)
    braid_gpu_fail("wgmma of registers of other types than 16-bit floats");
  issue((sum *)(void *)results, what, fragment);
}

/* ---- Order ---- */

EMULATED void braid_gpu_wgmma_fence_sync_aligned(void) { waiters[L->thread].fenced = true; }

EMULATED void braid_gpu_wgmma_commit_group_sync_aligned(void) {
  warpgroup *own = &groups[L->thread / GROUP];
  uint32_t number = waiters[L->thread].commits++;
  if (number == own->commits) {
    own->last[number % MAX_COMMITS] = own->products;
    ++own->commits;
  }
}

/* Registers that name sums which are complete get them. */
EMULATED void braid_gpu_wgmma_wait_group_sync_aligned(uint32_t *results, int32_t count,
                                                      int32_t left) {
  int group = L->thread / GROUP;
  warpgroup *own = &groups[group];
  waiter *self = &waiters[L->thread];
  uint32_t done = self->commits > (uint32_t)left ? self->commits - (uint32_t)left : 0;
  if (done > 0)
    braid_gpu_learn(L->threads + L->thread / WARP, own->last[(done - 1) % MAX_COMMITS]);
  for (int first = 0; first < count;) {
    int number = (int)(results[first] >> 8 & 0xff);
    accumulator *of = number < MAX_OPEN ? own->open[number] : NULL;
    bool names = of != NULL && results[first] == name_of(number, 0);
    if (!names || of->group >= done) {
      first += names ? of->n / 2 : 1;
      continue;
    }
    int registers = of->n / 2;
    for (int place = 0; place < registers; ++place)
      if (results[first + place] == name_of(number, place))
        results[first + place] =
            of->values[row_of(L->thread % GROUP, place)][column_of(L->thread % GROUP, place)].i;
    of->open = false;
    first += registers;
  }
  if (done == self->commits)
    self->fenced = false;
}
