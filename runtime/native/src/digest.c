/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * XXH64 with seed 0, after its specification (Yann Collet,
 * https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). */
#include "internal.h"

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u, P5 = 0x27D4EB2F165667C5u;

enum { LANES = 4, STRIPE = 8 * LANES };

uint64_t braid_read_le(const uint8_t *bytes, int count) {
  uint64_t value = 0;
  for (int i = count - 1; i >= 0; --i)
    value = value << 8 | bytes[i];
  return value;
}

/* With a constant count, compilers make this a single load. */
static inline uint64_t read_u64(const uint8_t *p) {
  return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
         (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

static inline uint64_t rotate(uint64_t value, int bits) {
  return value << bits | value >> (64 - bits);
}

static inline uint64_t mix(uint64_t lane, uint64_t input) {
  return rotate(lane + input * P2, 31) * P1;
}

static uint64_t digest_stripes(const uint8_t *next, size_t stripes) {
  uint64_t lanes[LANES] = {P1 + P2, P2, 0, 0 - P1};
  for (size_t i = 0; i < stripes; ++i, next += STRIPE)
    for (int lane = 0; lane < LANES; ++lane)
      lanes[lane] = mix(lanes[lane], read_u64(next + 8 * lane));
  uint64_t hash =
      rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
  for (int lane = 0; lane < LANES; ++lane)
    hash = (hash ^ mix(0, lanes[lane])) * P1 + P4;
  return hash;
}

uint64_t braid_digest(const void *data, size_t size) {
  const uint8_t *next = data;
  size_t stripes = size / STRIPE, rest = size % STRIPE;
  uint64_t hash = stripes > 0 ? digest_stripes(next, stripes) : P5;
  hash += size;
  next += stripes * STRIPE;
  for (; rest >= 8; rest -= 8, next += 8)
    hash = rotate(hash ^ mix(0, read_u64(next)), 27) * P1 + P4;
  for (; rest >= 4; rest -= 4, next += 4)
    hash = rotate(hash ^ braid_read_le(next, 4) * P1, 23) * P2 + P3;
  for (; rest > 0; --rest, ++next)
    hash = rotate(hash ^ *next * P5, 11) * P1;
  hash = (hash ^ hash >> 33) * P2;
  hash = (hash ^ hash >> 29) * P3;
  return hash ^ hash >> 32;
}
