// One dash or two, and values of switches, as on LLVM's command lines.

// RUN: %braid-opt %s -cse -mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: %braid-opt %s --cse --mlir-print-op-generic=true | FileCheck %s --check-prefix=GENERIC
// RUN: %braid-opt %s -cse -mlir-print-op-generic=0 | FileCheck %s --check-prefix=CUSTOM
// RUN: %braid-opt %s -verify-each=false -pass-pipeline='builtin.module(func.func(cse))' | FileCheck %s --check-prefix=CUSTOM
// RUN: %braid-opt %s -cse -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOCATIONS
// RUN: %braid-opt %s -cse -mlir-disable-threading -mlir-print-ir-module-scope -mlir-pass-pipeline-local-reproducer | FileCheck %s --check-prefix=CUSTOM
// RUN: not %braid-opt %s -mlir-timing=maybe 2>&1 | FileCheck %s --check-prefix=MAYBE
// RUN: not %braid-opt %s -mlir-elide-elementsattrs-if-larger=-5 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not %braid-opt %s -load-pass-plugin=pass.so 2>&1 | FileCheck %s --check-prefix=PLUGIN
// RUN: not %braid-opt %s --remarks-filter=.* 2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: %braid-opt --list-passes | FileCheck %s --check-prefix=PASSES

// GENERIC:     "func.func"() <{{.*}} ({
// GENERIC:       "arith.addi"
// CUSTOM:      func.func @f
// CUSTOM:        arith.addi
// CUSTOM-NOT:    arith.addi
// LOCATIONS:   arith.addi %a, %a : i32 loc("{{.*}}spelling.mlir":{{[0-9]+}}:8)
// MAYBE:       braid-opt: error: --mlir-timing takes true, false, 1 or 0, not 'maybe'
// LIMIT:       braid-opt: error: argument --mlir-elide-elementsattrs-if-larger: invalid limit value: '-5'
// PLUGIN:      braid-opt: error: --load-pass-plugin is refused: braid-opt runs passes and dialects in Python and cannot load libraries in C++; Python packages add passes by the entry point 'braid.passes'
// REMARKS:     braid-opt: error: --remarks-filter is refused: braid's remarks have no kinds; --remarks prints all
// PASSES:      passes of braid:
// PASSES:      annotate-profile
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}
