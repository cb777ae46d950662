// RUN: not %braid-opt %s -p cse,canonicalise 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not %braid-opt %s -p 'cse{fast=1}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not %braid-opt %s -p 'convert-memref-to-ptr{lower-func=maybe}' 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not %braid-opt %s -p 'mlir-opt{=}' 2>&1 | filecheck %s --check-prefix=MALFORMED
// RUN: not %braid-opt %s -p 'scf.for(cse)' 2>&1 | filecheck %s --check-prefix=ANCHOR
// RUN: not %braid-opt %s -p 'builtin.module(cse' 2>&1 | filecheck %s --check-prefix=OPEN
// RUN: not %braid-opt %s -p 'cse)' 2>&1 | filecheck %s --check-prefix=CLOSED
// RUN: not %braid-opt %s -p 'cse,,cse' 2>&1 | filecheck %s --check-prefix=EMPTY
// RUN: not %braid-opt %s --cse -p cse 2>&1 | filecheck %s --check-prefix=MIXED
// RUN: not %braid-opt %s --no-such-flag 2>&1 | filecheck %s --check-prefix=FLAG

// UNKNOWN:      <pass-pipeline>:1:5: error: unknown pass 'canonicalise'
// UNKNOWN-NEXT: {{^}}cse,canonicalise
// UNKNOWN-NEXT: {{^    \^$}}
// UNKNOWN-NEXT: hint: did you mean 'canonicalize'
// OPTION:       <pass-pipeline>:1:1: error: pass 'cse' has no option 'fast'
// OPTION:       hint: pass 'cse' takes no options
// TYPE:         error: pass 'convert-memref-to-ptr' rejects its options
// TYPE:         hint: its options are lower-func=<bool> (default false)
// MALFORMED:    error: malformed options of pass 'mlir-opt' at '='
// ANCHOR:       <pass-pipeline>:1:1: error: cannot nest passes under 'scf.for'; expected one of 'any', 'builtin.module', 'func.func'
// OPEN:         <pass-pipeline>:1:15: error: '(' is never closed
// CLOSED:       <pass-pipeline>:1:4: error: unbalanced ')'
// EMPTY:        <pass-pipeline>:1:5: error: expected the name of a pass
// MIXED:        braid-opt: error: a pipeline (-p) cannot be mixed with the pass flag --cse
// FLAG:         braid-opt: error: unrecognized arguments: --no-such-flag
builtin.module {}
