/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Messages in buffers of fixed size. Appending never exceeds the buffer, which always holds a
 * terminated string; text that does not fit is cut off between two characters of UTF-8.
 */
#ifndef BRAID_MESSAGE_H
#define BRAID_MESSAGE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BRAID_CUT_MARK "..."

typedef struct braid_message {
  char *text;
  size_t capacity; /* in bytes, terminator included */
  size_t used;     /* in bytes, terminator excluded */
  bool is_cut;     /* text was cut off: nothing more is appended */
} braid_message;

/* Returns a message that appends to the string in the buffer. */
static inline braid_message braid_message_in(char *text, size_t capacity) {
  return (braid_message){text, capacity, strlen(text), false};
}

/* Returns the number of bytes, at most `most`, at which a string can be cut without splitting a
 * character of UTF-8. */
static inline size_t braid_cut(const char *text, size_t most) {
  const char *end = memchr(text, '\0', most + 1);
  if (end != NULL)
    return (size_t)(end - text);
  while (most > 0 && ((unsigned char)text[most] & 0xC0) == 0x80)
    --most;
  return most;
}

/* Returns the precision of `%.*s` that prints at most `most` bytes of a string. */
static inline int braid_precision(const char *text, size_t most) {
  return (int)braid_cut(text, most);
}

static inline void braid_append_list(braid_message *message, const char *format,
                                     va_list arguments) {
  size_t room = message->capacity - message->used;
  if (message->is_cut)
    return;
  int length = vsnprintf(message->text + message->used, room, format, arguments);
  if (length < 0)
    message->text[message->used] = '\0';
  else if ((size_t)length < room)
    message->used += (size_t)length;
  else {
    const char *mark = message->capacity > sizeof BRAID_CUT_MARK ? BRAID_CUT_MARK : "";
    message->used = *mark ? braid_cut(message->text, message->capacity - sizeof BRAID_CUT_MARK) : 0;
    memcpy(message->text + message->used, mark, strlen(mark) + 1);
    message->used += strlen(mark);
    message->is_cut = true;
  }
}

__attribute__((format(printf, 2, 3))) static inline void braid_append(braid_message *message,
                                                                      const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  braid_append_list(message, format, arguments);
  va_end(arguments);
}

#endif /* BRAID_MESSAGE_H */
