/* Appends texts to messages of all small sizes. Built with sanitizers, it fails where one byte
 * beyond the buffer is touched. */
#include "message.h"

#include <assert.h>
#include <stdlib.h>

static int is_whole(const char *text) {
  for (size_t i = 0; text[i] != '\0';) {
    unsigned char first = (unsigned char)text[i];
    int length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    if (length == 0)
      return 0;
    for (int k = 1; k < length; ++k)
      if (((unsigned char)text[i + (size_t)k] & 0xC0) != 0x80)
        return 0;
    i += (size_t)length;
  }
  return 1;
}

int main(void) {
  const char *pieces[] = {"a", "größe", "…", "\xF0\x9F\x90\x8D", "", "a longer text than fits"};
  for (size_t capacity = 1; capacity < 48; ++capacity)
    for (unsigned seed = 0; seed < 500; ++seed) {
      char *text = malloc(capacity), whole[4096] = "";
      text[0] = '\0';
      braid_message message = braid_message_in(text, capacity);
      unsigned state = seed;
      for (int i = 0; i < 12; ++i) {
        const char *piece = pieces[rand_r(&state) % 6];
        if (i == 6) /* as another function goes on with it */
          message = braid_message_in(text, capacity);
        if (!message.is_cut || i < 6)
          strcat(whole, piece);
        braid_append(&message, "%s", piece);
        assert(message.used == strlen(text) && message.used < capacity);
        assert(is_whole(text));
      }
      assert(strlen(whole) >= capacity || strcmp(text, whole) == 0);
      free(text);
    }
  assert(braid_cut("größe", 3) == 2 && braid_cut("größe", 4) == 4 && braid_cut("abc", 9) == 3);
  return 0;
}
