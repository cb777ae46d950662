/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "undo.h"

void machine_note(machine *m, int64_t *where) {
  if (m->undoable) {
    machine_push(m, &m->undo, (int64_t)(intptr_t)where);
    machine_push(m, &m->undo, *where);
  }
}

void machine_undo(machine *m) {
  for (int32_t i = m->undo.tail - 2; i >= m->undo.head; i -= 2)
    *(int64_t *)(intptr_t)m->undo.item[i] = m->undo.item[i + 1];
  queue_clear(&m->undo);
}

void machine_keep(machine *m) { queue_clear(&m->undo); }
