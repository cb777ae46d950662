// RUN: %braid-opt %s --mlir-elide-elementsattrs-if-larger=4 | FileCheck %s --check-prefix=ELIDED
// RUN: %braid-opt %s --mlir-elide-elementsattrs-if-larger=8 | FileCheck %s --check-prefix=WHOLE
// RUN: %braid-opt %s --mlir-print-elementsattrs-with-hex-if-larger=7 | FileCheck %s --check-prefix=HEX
// RUN: %braid-opt %s --mlir-print-elementsattrs-with-hex-if-larger=-1 | FileCheck %s --check-prefix=WHOLE
// Bytes that are printed are read back.
// RUN: %braid-opt %s --mlir-print-elementsattrs-with-hex-if-larger=7 | %braid-opt | FileCheck %s --check-prefix=WHOLE
// Quotation marks count, as in mlir-opt.
// RUN: %braid-opt %s --mlir-elide-resource-strings-if-larger=43 | FileCheck %s --check-prefix=NO-RESOURCE
// RUN: %braid-opt %s --mlir-elide-resource-strings-if-larger=44 | FileCheck %s --check-prefix=RESOURCE
// RUN: %braid-opt %s --mlir-use-nameloc-as-prefix | FileCheck %s --check-prefix=NAMES
// RUN: %braid-opt %s --mlir-print-skip-regions | FileCheck %s --check-prefix=SKIPPED
// RUN: %braid-opt %s --mlir-print-value-users | FileCheck %s --check-prefix=USERS
// RUN: %braid-opt %s --mlir-print-unique-ssa-ids | FileCheck %s --check-prefix=UNIQUE
// RUN: %braid-opt %s | FileCheck %s --check-prefix=WHOLE
// The IR around passes is printed in the same way.
// RUN: %braid-opt %s -cse --mlir-print-ir-after=cse --mlir-elide-elementsattrs-if-larger=4 2>&1 >/dev/null | FileCheck %s --check-prefix=DUMP

// ELIDED:       %c = arith.constant dense_resource<__elided__> : tensor<8xf32>
// ELIDED-NEXT:  %s = arith.constant dense<1.000000e+00> : tensor<8xf32>
// DUMP:         IR Dump After CSEPass
// DUMP:         %c = arith.constant dense_resource<__elided__> : tensor<8xf32>
// WHOLE:        %c = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]> : tensor<8xf32>
// HEX:          %c = arith.constant dense<"0x0000803F0000004000004040000080400000A0400000C0400000E04000000041"> : tensor<8xf32>
// HEX-NEXT:     %s = arith.constant dense<1.000000e+00> : tensor<8xf32>
// NO-RESOURCE:      dense_resource<blob> : tensor<4xf32>
// NO-RESOURCE-NOT:  blob: "
// RESOURCE:         blob: "0x0400000001000000020000000300000004000000"
// NAMES:        %zero = arith.constant 0 : i32
// NAMES-NEXT:   %my_sum = arith.addi %a, %zero : i32
// NAMES-NEXT:   %my_sum_1 = arith.addi %my_sum, %zero : i32
// NAMES:        func.return %my_sum_1, %c
// SKIPPED:      builtin.module {...}
// USERS:          // %a is used by %[[SUM:.*]]
// USERS:          %[[SUM]] = arith.addi %a, %{{.*}} : i32 // user: %[[TWICE:.*]]
// USERS-NEXT:     %[[TWICE]] = arith.addi %[[SUM]], %{{.*}} : i32 // user: %[[RETURN:.*]]
// USERS:          %s = arith.constant {{.*}} // unused
// USERS:          func.return {{.*}} // id: %[[RETURN]]
// UNIQUE:       func.func @f(%a: i32)
// UNIQUE:       func.func @g(%a_1: i32)
func.func @f(%a: i32) -> (i32, tensor<8xf32>) {
  %0 = arith.constant 0 : i32 loc("zero")
  %1 = arith.addi %a, %0 : i32 loc("my sum")
  %2 = arith.addi %1, %0 : i32 loc("my sum")
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %s = arith.constant dense<1.0> : tensor<8xf32>
  %r = arith.constant dense_resource<blob> : tensor<4xf32>
  func.return %2, %c : i32, tensor<8xf32>
}
func.func @g(%a: i32) -> i32 {
  func.return %a : i32
}
{-#
  dialect_resources: {
    builtin: {
      blob: "0x0400000001000000020000000300000004000000"
    }
  }
#-}
