/* The tile registers of AMX as functions, for machines without them. What a processor refuses ends
 * the process: shapes that do not fit each other, registers that are not configured. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 8, ROWS = 16, ROW_BYTES = 64 };

static _Thread_local struct {
  uint16_t row_bytes[REGISTERS];
  uint8_t rows[REGISTERS];
  uint8_t data[REGISTERS][ROWS][ROW_BYTES];
} tiles;

static void require(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "tile registers: %s\n", what);
  abort();
}

void emulated_ldtilecfg(const uint8_t *configuration) {
  memset(&tiles, 0, sizeof tiles);
  require(configuration[0] == 1 && configuration[1] == 0, "another palette");
  memcpy(tiles.row_bytes, configuration + 16, sizeof tiles.row_bytes);
  memcpy(tiles.rows, configuration + 48, sizeof tiles.rows);
  for (int i = 0; i < REGISTERS; ++i)
    require(tiles.rows[i] <= ROWS && tiles.row_bytes[i] <= ROW_BYTES, "a shape too large");
}

void emulated_tilerelease(void) { memset(&tiles, 0, sizeof tiles); }

void emulated_tilezero(int8_t t) {
  require(tiles.rows[t] > 0, "not configured");
  memset(tiles.data[t], 0, sizeof tiles.data[t]);
}

void emulated_tileloadd64(int8_t t, const uint8_t *from, int64_t stride) {
  require(tiles.rows[t] > 0, "not configured");
  memset(tiles.data[t], 0, sizeof tiles.data[t]);
  for (int row = 0; row < tiles.rows[t]; ++row)
    memcpy(tiles.data[t][row], from + row * stride, tiles.row_bytes[t]);
}

void emulated_tilestored64(int8_t t, uint8_t *to, int64_t stride) {
  require(tiles.rows[t] > 0, "not configured");
  for (int row = 0; row < tiles.rows[t]; ++row)
    memcpy(to + row * stride, tiles.data[t][row], tiles.row_bytes[t]);
}

static void require_product(int sum, int a, int b) {
  require(sum != a && sum != b && a != b, "a register twice");
  require(tiles.rows[sum] == tiles.rows[a], "rows of A");
  require(tiles.row_bytes[sum] == tiles.row_bytes[b], "columns of B");
  require(tiles.row_bytes[a] == 4 * tiles.rows[b], "steps");
}

static int32_t byte(uint8_t value, int is_unsigned) { return is_unsigned ? value : (int8_t)value; }

static void add_bytes(int sum, int a, int b, int a_unsigned, int b_unsigned) {
  require_product(sum, a, b);
  for (int m = 0; m < tiles.rows[sum]; ++m)
    for (int n = 0; n < tiles.row_bytes[sum] / 4; ++n) {
      int32_t total;
      memcpy(&total, &tiles.data[sum][m][4 * n], 4);
      for (int k = 0; k < 4 * tiles.rows[b]; ++k)
        total += byte(tiles.data[a][m][k], a_unsigned) *
                 byte(tiles.data[b][k / 4][4 * n + k % 4], b_unsigned);
      memcpy(&tiles.data[sum][m][4 * n], &total, 4);
    }
}

void emulated_tdpbssd(int8_t sum, int8_t a, int8_t b) { add_bytes(sum, a, b, 0, 0); }
void emulated_tdpbsud(int8_t sum, int8_t a, int8_t b) { add_bytes(sum, a, b, 0, 1); }
void emulated_tdpbusd(int8_t sum, int8_t a, int8_t b) { add_bytes(sum, a, b, 1, 0); }
void emulated_tdpbuud(int8_t sum, int8_t a, int8_t b) { add_bytes(sum, a, b, 1, 1); }

static float half(const uint8_t *bytes) {
  uint32_t bits = (uint32_t)bytes[0] << 16 | (uint32_t)bytes[1] << 24;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

void emulated_tdpbf16ps(int8_t sum, int8_t a, int8_t b) {
  require_product(sum, a, b);
  for (int m = 0; m < tiles.rows[sum]; ++m)
    for (int n = 0; n < tiles.row_bytes[sum] / 4; ++n) {
      float total;
      memcpy(&total, &tiles.data[sum][m][4 * n], 4);
      for (int k = 0; k < 2 * tiles.rows[b]; ++k)
        total += half(&tiles.data[a][m][2 * k]) * half(&tiles.data[b][k / 2][4 * n + 2 * (k % 2)]);
      memcpy(&tiles.data[sum][m][4 * n], &total, 4);
    }
}
