// The text of a pipeline, in the forms that mlir-opt and xdsl-opt take, and what is wrong with it.

// RUN: %braid-opt %s -p canonicalize,cse | FileCheck %s
// RUN: %braid-opt %s --pass-pipeline='builtin.module(func.func(canonicalize),cse)' | FileCheck %s
// RUN: %braid-opt %s -p ' builtin.module( any( canonicalize , cse{} ) ) ' | FileCheck %s
// RUN: %braid-opt %s --canonicalize --cse | FileCheck %s
// RUN: %braid-opt --passes=simplify - < %s | FileCheck %s
// RUN: %braid-opt < %s | FileCheck %s --check-prefix=UNCHANGED
// RUN: %braid-opt %s -p 'builtin.module( )' | FileCheck %s --check-prefix=UNCHANGED

// CHECK-LABEL: func.func @f
// CHECK-NOT:     arith.constant
// CHECK:         %[[M:.*]] = arith.muli %a, %a : i32
// CHECK-NOT:     arith.muli
// CHECK:         arith.addi %[[M]], %[[M]] : i32
// UNCHANGED:     arith.constant 0
// UNCHANGED:     arith.muli
// UNCHANGED:     arith.muli

// The order is that of the text through all nesting; a pipeline's name is replaced by its passes.
// RUN: %braid-opt %s -p 'builtin.module(test-options{count=1},func.func(test-options{count=2},simplify),any(test-options{count=3})),test-options{count=4}' | FileCheck %s --check-prefix=ORDER
// ORDER: count=1 {{.*}}; count=2 {{.*}}; count=3 {{.*}}; count=4
// ORDER-NOT: arith.constant

// Brackets, commas and quotes within quotes are not syntax.
// RUN: %braid-opt %s -p 'builtin.module(test-options{count=1 file-name="){,\"(["},cse)' | FileCheck %s --check-prefix=QUOTED
// QUOTED: file_name='){,\22(['

// RUN: not %braid-opt %s -p cse,canonicalise 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: <pass-pipeline>:1:5: error: unknown pass 'canonicalise'
// UNKNOWN: {{^}}cse,canonicalise
// UNKNOWN: {{^    \^$}}
// UNKNOWN: hint: did you mean 'canonicalize'

// RUN: sh -c "%braid-opt %s -p CSE 2>&1; echo status $?" | FileCheck %s --check-prefix=STATUS
// STATUS: hint: did you mean 'cse'
// STATUS-NOT: func.func
// STATUS: status 1

// RUN: not %braid-opt %s -p no-pass-is-called-this 2>&1 | FileCheck %s --check-prefix=UNLIKE
// UNLIKE: error: unknown pass 'no-pass-is-called-this'
// UNLIKE: hint: braid-opt --help lists the passes

// RUN: not %braid-opt %s -p 'scf.for(cse)' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: <pass-pipeline>:1:1: error: cannot nest passes under 'scf.for'; expected one of 'any', 'builtin.module', 'func.func'

// RUN: not %braid-opt %s -p 'func.func{x=1}(cse)' 2>&1 | FileCheck %s --check-prefix=ANCHOR-OPTIONS
// ANCHOR-OPTIONS: <pass-pipeline>:1:15: error: expected ',' or the end of the pipeline after 'func.func'

// RUN: not %braid-opt %s -p 'cse,builtin.module' 2>&1 | FileCheck %s --check-prefix=ANCHOR-ALONE
// ANCHOR-ALONE: <pass-pipeline>:1:19: error: expected '(' after 'builtin.module'

// RUN: not %braid-opt %s -p 'simplify{fast}' 2>&1 | FileCheck %s --check-prefix=PIPELINE-OPTIONS
// PIPELINE-OPTIONS: <pass-pipeline>:1:9: error: pipeline 'simplify' takes no options

// RUN: not %braid-opt %s -p 'builtin.module(cse' 2>&1 | FileCheck %s --check-prefix=OPEN
// OPEN: <pass-pipeline>:1:15: error: '(' is never closed

// RUN: not %braid-opt %s -p 'test-options{count=1' 2>&1 | FileCheck %s --check-prefix=OPEN-BRACE
// OPEN-BRACE: <pass-pipeline>:1:13: error: '{' is never closed

// RUN: not %braid-opt %s -p 'any(cse})' 2>&1 | FileCheck %s --check-prefix=CLOSED
// CLOSED: <pass-pipeline>:1:8: error: unbalanced '}'

// RUN: not %braid-opt %s -p 'cse,,cse' 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: <pass-pipeline>:1:5: error: expected the name of a pass

// RUN: not %braid-opt %s -p 'any(cse,)' 2>&1 | FileCheck %s --check-prefix=LAST
// LAST: <pass-pipeline>:1:9: error: expected the name of a pass

// RUN: not %braid-opt %s -p 'cse canonicalize' 2>&1 | FileCheck %s --check-prefix=NO-COMMA
// NO-COMMA: <pass-pipeline>:1:5: error: expected ',' or the end of the pipeline after 'cse'

// RUN: not %braid-opt %s -p 'any(cse)canonicalize' 2>&1 | FileCheck %s --check-prefix=BEHIND
// BEHIND: <pass-pipeline>:1:9: error: expected ',' or the end of the pipeline after 'any'

// RUN: not %braid-opt %s -p 'cse[canonicalize]' 2>&1 | FileCheck %s --check-prefix=SQUARE
// SQUARE: <pass-pipeline>:1:1: error: malformed element 'cse[canonicalize]'
// SQUARE: hint: options are written in braces

// RUN: not %braid-opt %s --cse -p cse 2>&1 | FileCheck %s --check-prefix=MIXED
// MIXED: braid-opt: error: a pipeline (-p) cannot be mixed with the pass flag --cse

// RUN: not %braid-opt %s --no-such-flag 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: braid-opt: error: unrecognized arguments: --no-such-flag
func.func @f(%a: i32) -> i32 {
  %0 = arith.constant 0 : i32
  %1 = arith.addi %a, %0 : i32
  %2 = arith.muli %1, %1 : i32
  %3 = arith.muli %1, %1 : i32
  %4 = arith.addi %2, %3 : i32
  func.return %4 : i32
}
