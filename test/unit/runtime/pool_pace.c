/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * When teams shrink and grow again, by a clock that this program sets: `pace.c` is compiled to
 * read `read_clock`.
 */
#include "pace.h"
#include "pool_work.h"

#include <time.h>

static int64_t milliseconds = 1000;

int read_clock(clockid_t clock, struct timespec *time) {
  (void)clock;
  *time = (struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000};
  return 0;
}

/* Milliseconds until teams are larger than now. */
static int64_t wait_for_more(int wanted) {
  int allowed = braid_pace_allowed(wanted);
  int64_t before = milliseconds;
  while (braid_pace_allowed(wanted) == allowed)
    ++milliseconds;
  return milliseconds - before;
}

int main(void) {
  REQUIRE(braid_pace_allowed(15) == 15);
  /* One of sixteen is kept from its CPU: the others go on. */
  braid_pace_crowded(15, 1);
  REQUIRE(braid_pace_allowed(15) == 14);
  REQUIRE(braid_pace_allowed(3) == 3);
  REQUIRE(wait_for_more(15) == 10);
  REQUIRE(braid_pace_allowed(15) == 15);
  /* Each growth that is too early doubles the pause, up to a third of a second. */
  int64_t pauses[] = {20, 40, 80, 160, 320, 320};
  for (int i = 0; i < 6; ++i) {
    milliseconds += 5;
    braid_pace_crowded(1, 1);
    REQUIRE(braid_pace_allowed(1) == 0);
    REQUIRE(wait_for_more(1) == pauses[i]);
  }
  /* Teams of several callers that see the same count once. */
  braid_pace_crowded(1, 1);
  braid_pace_crowded(1, 1);
  REQUIRE(wait_for_more(1) == 320);
  /* After a long time without, the pause is short again. */
  milliseconds += 10000;
  braid_pace_crowded(1, 1);
  REQUIRE(wait_for_more(1) == 10);
  /* A growth that held for more than two pauses was not too early. */
  for (int i = 0; i < 3; ++i) {
    milliseconds += 25;
    braid_pace_crowded(1, 1);
    REQUIRE(wait_for_more(1) == 10);
  }
  /* From one thread to many, by doubling. */
  milliseconds += 10000;
  braid_pace_crowded(15, 15);
  REQUIRE(braid_pace_allowed(15) == 0);
  for (int allowed = 1; allowed <= 15; allowed = 2 * allowed + 1) {
    wait_for_more(15);
    REQUIRE(braid_pace_allowed(15) == allowed);
  }
  braid_pace_crowded(15, 15);
  braid_pace_reset();
  REQUIRE(braid_pace_allowed(15) == 15);
  return 0;
}
