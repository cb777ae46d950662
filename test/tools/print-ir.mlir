// RUN: %braid-opt %s -p canonicalize,cse --print-ir-after-all 2>&1 >/dev/null | filecheck %s --check-prefix=AFTER
// RUN: %braid-opt %s -p canonicalize,cse --mlir-print-ir-before-all 2>&1 >/dev/null | filecheck %s --check-prefix=BEFORE
// RUN: %braid-opt %s -p canonicalize,cse --print-ir-after-change 2>&1 >/dev/null | filecheck %s --check-prefix=CHANGE
// RUN: %braid-opt %s -p canonicalize,cse --print-ir-after=cse 2>&1 >/dev/null | filecheck %s --check-prefix=ONE
// RUN: rm -rf %t && %braid-opt %s -p canonicalize,cse --print-ir-tree-dir=%t > /dev/null
// RUN: filecheck %s --check-prefix=TREE < %t/builtin_module_no-symbol-name/1_cse.mlir
// RUN: ls %t/builtin_module_no-symbol-name | filecheck %s --check-prefix=FILES
// RUN: not %braid-opt %s -p cse --print-ir-before=canonicalise 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %braid-opt %s -p cse --print-ir-tree-dir=/dev/null/x 2>&1 | filecheck %s --check-prefix=BAD

// AFTER:       // -----// IR Dump After CanonicalizePass (canonicalize) //----- //
// AFTER-NEXT:  builtin.module {
// AFTER:       // -----// IR Dump After CSEPass (cse) //----- //
// BEFORE:      IR Dump Before CanonicalizePass
// BEFORE:      arith.constant 0
// BEFORE:      IR Dump Before CSEPass
// BEFORE-NOT:  arith.constant 0
// CHANGE:      IR Dump After CanonicalizePass
// CHANGE-NOT:  IR Dump After CSEPass
// ONE-NOT:     IR Dump After CanonicalizePass
// ONE:         IR Dump After CSEPass
// TREE:        IR Dump After CSEPass
// FILES:       0_canonicalize.mlir
// FILES-NEXT:  1_cse.mlir
// UNKNOWN:     braid-opt: error: cannot print the IR around 'canonicalise', which is not a pass
// BAD:         braid-opt: error: cannot write IR to '/dev/null/x/
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  func.return %1 : i32
}
