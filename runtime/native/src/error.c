/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "internal.h"
#include "message.h"

static _Thread_local char last_error[1024];

void braid_set_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  braid_message message = {last_error, sizeof last_error, 0, false};
  braid_append_list(&message, format, arguments);
  va_end(arguments);
}

const char *braid_last_error(void) { return last_error; }
