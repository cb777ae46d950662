// What passes claim of their decisions is checked where a flag or the environment asks for it, and
// a claim that does not hold is a crash of the pass.

// RUN: %braid-opt %s -p 'search-order{objective=memory},apply-order,plan-memory' --remarks --verify-decisions 2>&1 | filecheck %s
// RUN: not env BRAID_VERIFY_DECISIONS=0 %python %S/Inputs/wrong_claim.py %s -p 'cse,search-order{objective=memory}' --verify-decisions --crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: not env BRAID_VERIFY_DECISIONS=1 %python %S/Inputs/wrong_claim.py %s -p 'search-order{objective=memory}' --crash-reproducer=%t.mlir 2>&1 | filecheck %s --check-prefix=WRONG
// RUN: filecheck %s --check-prefix=FILE --input-file %t.mlir
// RUN: env BRAID_VERIFY_DECISIONS=0 %python %S/Inputs/wrong_claim.py %s -p 'search-order{objective=memory}' --remarks 2>&1 | filecheck %s --check-prefix=UNCHECKED
// RUN: %braid-opt --run-reproducer %t.mlir --verify-decisions | filecheck %s --check-prefix=RIGHT

// The order that stands needs 400 bytes at once.
// CHECK: [search-order] 5 ops, before 400, cost 272 bytes
// CHECK: [plan-memory] arena of 272 bytes
// WRONG-NOT: Traceback
// WRONG: braid-opt: error: pass 'search-order' crashed: it claims what does not hold: '@f': cost 136 claimed, 272 found
// WRONG: hint: this is a bug of the pass; 'braid-opt --run-reproducer --verify-decisions {{.*}}.mlir --debug' shows it again
// FILE: pipeline: "builtin.module(search-order)
// UNCHECKED: cost 136 bytes
// RIGHT: func.func @f
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = braid.opaque "a"(%x) {cost = 1.0} : (tensor<8xf32>) -> tensor<64xf32>
  %c = braid.opaque "c"(%x) {cost = 3.0} : (tensor<8xf32>) -> tensor<32xf32>
  %b = braid.opaque "b"(%a) {cost = 2.0} : (tensor<64xf32>) -> tensor<4xf32>
  %d = braid.opaque "d"(%c) {cost = 4.0} : (tensor<32xf32>) -> tensor<4xf32>
  %e = braid.opaque "e"(%b, %d) {cost = 5.0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  func.return %e : tensor<8xf32>
}
