// A crash of a pass leaves the IR before it with that pass, and `--run-reproducer` runs it again.

// RUN: not %braid-opt %s -p 'cse,test-failure{note="a \"b\" ü"},canonicalize' --crash-reproducer=%t.mlir 2>&1 | FileCheck %s --check-prefix=CRASH
// RUN: FileCheck %s --check-prefix=FILE --input-file %t.mlir
// RUN: not %braid-opt --run-reproducer %t.mlir --crash-reproducer=%t.2.mlir 2>&1 | FileCheck %s --check-prefix=CRASH
// RUN: cmp %t.mlir %t.2.mlir
// RUN: not %braid-opt --run-reproducer %t.mlir --crash-reproducer=%t.2.mlir --debug 2>&1 | FileCheck %s --check-prefix=DEBUG

// CRASH-NOT: Traceback
// CRASH: braid-opt: error: pass 'test-failure' crashed: KeyError: 'lost'
// CRASH: hint: this is a bug of the pass; 'braid-opt --run-reproducer {{.*}}.mlir --debug' shows it again
// CRASH-NOT: {{.}}
// DEBUG: Traceback (most recent call last)
// DEBUG: KeyError: 'lost'

// The passes before have run; the failing one's changes and the passes after it are not included.
// FILE: // The IR before pass 'test-failure', which fails on it.
// FILE: // Run it with: braid-opt --run-reproducer THIS_FILE
// FILE-NOT: @change
// FILE: "arith.muli"
// FILE-NOT: "arith.muli"
// FILE: loc("{{.*}}reproducer.mlir":
// FILE: mlir_reproducer: {
// FILE: pipeline: "builtin.module(test-failure{note=\22a \5C\22b\5C\22 \C3\BC\22})"
// FILE-NOT: canonicalize

// Invalid IR is a crash of the pass that left it; it goes unnoticed without verification.
// RUN: not %braid-opt %s -p 'cse,test-failure{how=invalid-ir},cse' --crash-reproducer=%t.invalid.mlir 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: not %braid-opt --run-reproducer %t.invalid.mlir --crash-reproducer=%t.2.mlir 2>&1 | FileCheck %s --check-prefix=INVALID
// RUN: %braid-opt --run-reproducer %t.invalid.mlir --verify-each=false | FileCheck %s --check-prefix=UNNOTICED
// INVALID: error: pass 'test-failure' crashed: it left invalid IR: 'func.func'
// UNNOTICED: @no_terminator

// A diagnostic is not a crash.
// RUN: rm -f %t.none.mlir
// RUN: not %braid-opt %s -p 'test-failure{how=diagnostic}' --crash-reproducer=%t.none.mlir 2>&1 | FileCheck %s --check-prefix=DIAGNOSTIC
// RUN: test ! -e %t.none.mlir
// DIAGNOSTIC: braid-opt: error: it does not fit
// DIAGNOSTIC: hint: use less
// DIAGNOSTIC-NOT: reproducer

// Without a name the file is a new temporary file.
// RUN: rm -rf %t.tmp && mkdir %t.tmp
// RUN: not env TMPDIR=%t.tmp %braid-opt %s -p test-failure 2>&1 | FileCheck %s --check-prefix=TEMPORARY
// RUN: grep -q mlir_reproducer %t.tmp/braid-test-failure-*.mlir
// TEMPORARY: hint: this is a bug of the pass; 'braid-opt --run-reproducer {{.*}}.tmp/braid-test-failure-{{.*}}.mlir --debug'

// RUN: not %braid-opt %s -p test-failure --crash-reproducer=/dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: pass 'test-failure' crashed: KeyError: 'lost'
// FULL: note: cannot write the reproducer '/dev/full': No space left on device
// FULL: hint: this is a bug of the pass; --debug shows where

// A reproducer of mlir-opt with several passes runs like any other.
// RUN: %braid-opt --run-reproducer %s | FileCheck %s
// RUN: %braid-opt --run-reproducer %s --timing 2>&1 | FileCheck %s --check-prefix=TIMING
// CHECK-LABEL: func.func @f
// CHECK-NOT: arith.constant
// CHECK: arith.muli %a, %a : i32
// CHECK-NOT: arith.muli
// TIMING: canonicalize
// TIMING: cse

// Without the flag the pipeline is only data.
// RUN: %braid-opt %s | FileCheck %s --check-prefix=DATA
// DATA: arith.constant 0

// RUN: not %braid-opt --run-reproducer %s -p cse 2>&1 | FileCheck %s --check-prefix=BOTH
// BOTH: error: --run-reproducer takes the pipeline from the file; give no other

// RUN: sed 's/canonicalize),cse/canonicalise),cse/' %s > %t.unknown.mlir
// RUN: not %braid-opt --run-reproducer %t.unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: <pass-pipeline>:1:30: error: unknown pass 'canonicalise'
// UNKNOWN: {{^}}builtin.module(any(func.func(canonicalise),cse))
// UNKNOWN: hint: did you mean 'canonicalize'

// RUN: not %braid-opt --run-reproducer %S/registry.mlir 2>&1 | FileCheck %s --check-prefix=NO-PIPELINE
// NO-PIPELINE: error: '{{.*}}registry.mlir' holds no pipeline to run
// NO-PIPELINE: hint: a reproducer ends in {-# external_resources: {mlir_reproducer: {pipeline:
func.func @f(%a: i32) -> (i32, i32) {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  %2 = arith.muli %1, %1 : i32
  %3 = arith.muli %1, %1 : i32
  func.return %2, %3 : i32, i32
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
