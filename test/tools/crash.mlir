// A pass that cannot find its tool fails in a way that is no diagnostic.
// RUN: not %braid-opt %s -p 'canonicalize,mlir-opt{executable=no-such-tool},cse' --crash-reproducer=%t.mlir 2>&1 | filecheck %s
// RUN: filecheck %s --check-prefix=FILE < %t.mlir
// RUN: not %braid-opt --run-reproducer %t.mlir --crash-reproducer=%t.2.mlir 2>&1 | filecheck %s
// RUN: not %braid-opt --run-reproducer %t.mlir --crash-reproducer=%t.2.mlir --debug 2>&1 | filecheck %s --check-prefix=DEBUG
// RUN: not %braid-opt --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'mlir-opt{executable=no-such-tool}' --crash-reproducer=/dev/full 2>&1 | filecheck %s --check-prefix=FULL

// CHECK-NOT:  Traceback
// CHECK:      error: pass 'mlir-opt' crashed: {{.*}}no-such-tool
// CHECK-NEXT: hint: this is a bug of the pass; 'braid-opt --run-reproducer {{.*}}.mlir --debug' shows it again
// DEBUG:      Traceback (most recent call last)
// NONE:       error: '{{.*}}crash.mlir' holds no pipeline to run
// FULL:       error: cannot write the reproducer '/dev/full': No space left on device

// The reproducer holds the IR before the failing pass, and that pass alone.
// FILE-NOT:   arith.addi
// FILE:       func.return
// FILE-NOT:   "cse"
// FILE:       mlir_reproducer: {
// FILE-NEXT:    pipeline: "builtin.module(mlir-opt{{.*}}no-such-tool
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  func.return %1 : i32
}
