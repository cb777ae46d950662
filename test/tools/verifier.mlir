// RUN: not %braid-opt %s 2>&1 | filecheck %s
// RUN: %braid-opt %s --no-verify --print-op-generic | filecheck %s --check-prefix=UNVERIFIED

// CHECK:      verifier.mlir:10:8: error: 'arith.addi' op operand 'rhs' at position 1 does not verify: {{.*}} got i64
// CHECK-NEXT: {{^}}  %0 = "arith.addi"(%a, %b)
// CHECK-NEXT: {{^       \^$}}
// CHECK-NOT:  Traceback
// UNVERIFIED: "arith.addi"(%a, %b)
func.func @f(%a: i32, %b: i64) {
  %0 = "arith.addi"(%a, %b) : (i32, i64) -> i32
  func.return
}
