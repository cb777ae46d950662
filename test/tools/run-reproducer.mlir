// A reproducer holds its pipeline, here a nested one; it runs like any other.
// RUN: %braid-opt --run-reproducer %s | filecheck %s
// RUN: %braid-opt --run-reproducer %s --timing 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: not %braid-opt --run-reproducer %s -p cse 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: sed 's/canonicalize/canonicalise/' %s | not %braid-opt --run-reproducer 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: sed 's/"builtin.*"/true/' %s | not %braid-opt --run-reproducer 2>&1 | filecheck %s --check-prefix=NONE
// Without the flag the pipeline is only data.
// RUN: %braid-opt %s | filecheck %s --check-prefix=DATA

// CHECK:      func.func @f
// CHECK-NEXT:   arith.muli %a, %a : i32
// CHECK-NEXT:   func.return
// TIMING:     canonicalize
// TIMING:     cse
// BOTH:       error: --run-reproducer takes the pipeline from the file; give no other
// UNKNOWN:    error: unknown pass 'canonicalise'
// UNKNOWN:    hint: did you mean 'canonicalize'
// NONE:       error: '<stdin>' holds no pipeline to run
// DATA:       arith.constant 0
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  %2 = arith.muli %1, %1 : i32
  func.return %2 : i32
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(any(func.func(canonicalize),cse))",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
