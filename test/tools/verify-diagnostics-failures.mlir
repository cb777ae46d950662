// RUN: not %braid-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s

// CHECK: failures.mlir:4:30: error: expected error "something else" was not produced
func.func private @missing() // expected-error {{something else}}

// -----

// CHECK: failures.mlir:9:1: error: unexpected error: op 'no.such_op' is not registered
no.such_op

// -----

// The kind and the line must match as well, and one comment matches one diagnostic.
// CHECK:      failures.mlir:17:1: error: unexpected error: op 'no.such_op'
// CHECK:      failures.mlir:16:1: error: expected warning "no.such_op" was not produced
// expected-warning @below {{no.such_op}}
no.such_op

// -----

// CHECK: failures.mlir:22:30: error: malformed expectation
func.func private @garbled() // expected-error @+x {{text}}
