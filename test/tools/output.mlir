// RUN: echo old > %t.mlir && %braid-opt %s -o %t.mlir && filecheck %s < %t.mlir
// RUN: echo old > %t.mlir && not %braid-opt %s -p no-such-pass -o %t.mlir && grep old %t.mlir
// RUN: not %braid-opt %s -o %t.no-such-dir/out.mlir 2>&1 | filecheck %s --check-prefix=DIR
// RUN: rm -f %t.new.mlir && not %braid-opt %s -o %t.new.mlir --remarks-json=/dev/full && test ! -e %t.new.mlir
// RUN: not %braid-opt %s -p no-such-pass --remarks-json=%t.no-such-dir/remarks.json 2>&1 | filecheck %s --check-prefix=DIR
// RUN: not %braid-opt %s -o /dev/full 2>&1 | filecheck %s --check-prefix=FULL
// RUN: not %braid-opt %s 2>&1 > /dev/full | filecheck %s --check-prefix=STDOUT
// RUN: %braid-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: %braid-opt %s --mlir-print-debuginfo | filecheck %s --check-prefix=LOC

// CHECK:   func.func private @f
// DIR:     braid-opt: error: cannot write '{{.*}}{{(out.mlir|remarks.json)}}': No such file or directory
// FULL:    braid-opt: error: cannot write '/dev/full': No space left on device
// STDOUT:  braid-opt: error: cannot write to standard output: No space left on device
// GENERIC: "func.func"()
// LOC:     func.func private @f(i32) -> () loc("{{.*}}output.mlir":17:1)
func.func private @f(i32)
