/* Which sources the shared object was built from: see `braid_digest_sources` in CMakeLists.txt. */

#include "chip_order.h"

#ifndef BRAID_SOURCES
#define BRAID_SOURCES "unknown"
#endif

BRAID_API const char *braid_solvers_sources(void);

const char *braid_solvers_sources(void) { return BRAID_SOURCES; }
