// RUN: not %braid-opt %s --split-input-file 2>%t.err | filecheck %s
// RUN: filecheck %s --check-prefix=ERR < %t.err
// RUN: rm -f %t.out && not %braid-opt %s --split-input-file -o %t.out && test ! -e %t.out

// A part that fails does not keep the others from being processed, and lines count from the
// beginning of the file.

// CHECK-LABEL: func.func private @first
// CHECK:       // -----
// CHECK-LABEL: func.func private @third
// CHECK-NOT:   // -----
// ERR:         split-input-file.mlir:16:1: error: op 'no.such_op' is not registered
func.func private @first()

// -----
no.such_op

  // -----
func.func private @third()
