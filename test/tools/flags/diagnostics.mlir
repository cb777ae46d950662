// RUN: not %braid-opt %s --mlir-print-op-on-diagnostic 2>&1 | FileCheck %s --check-prefix=OP
// RUN: not %braid-opt %s --mlir-print-op-on-diagnostic --mlir-disable-diagnostic-notes 2>&1 | FileCheck %s --check-prefix=NO-NOTES
// RUN: %braid-opt %s --verify-diagnostics
// RUN: %braid-opt %s --mlir-very-unsafe-disable-verifier-on-parsing | FileCheck %s --check-prefix=UNSAFE
// RUN: not %braid-opt %s --verify-diagnostics --mlir-print-op-on-diagnostic 2>&1 | FileCheck %s --check-prefix=UNEXPECTED
// RUN: %braid-opt %s --verify-diagnostics=only-expected --mlir-print-op-on-diagnostic
// RUN: not %braid-opt %s --verify-diagnostics=some 2>&1 | FileCheck %s --check-prefix=CHOICE

// OP:              error: 'func.return' op
// OP:              note: see current operation: "func.return"(%{{.*}}) : (i32) -> ()
// NO-NOTES:        error: 'func.return' op
// NO-NOTES-NOT:    note:
// UNSAFE:          func.return %a : i32
// UNEXPECTED:      error: unexpected note: see current operation
// CHOICE:          argument --verify-diagnostics: invalid choice: 'some'
func.func @f(%a: i32) -> i64 {
  // expected-error @+1 {{'func.return' op Expected arguments to have the same types}}
  func.return %a : i32
}
