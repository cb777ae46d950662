/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[1024];

void braid_set_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
}

const char *braid_last_error(void) { return last_error; }
