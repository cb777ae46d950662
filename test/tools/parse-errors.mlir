// RUN: printf 'func.func @f(' > %t.mlir && not %braid-opt %t.mlir 2>&1 | filecheck %s --check-prefix=TRUNCATED
// RUN: printf '\377\376\000' > %t.mlir && not %braid-opt %t.mlir 2>&1 | filecheck %s --check-prefix=BINARY
// RUN: printf 'ML\357R123' > %t.mlir && not %braid-opt %t.mlir 2>&1 | filecheck %s --check-prefix=BYTECODE
// RUN: printf '\t%%%%0 = "no.such"() : () -> i32\n' > %t.mlir && not %braid-opt %t.mlir 2>&1 | filecheck %s --check-prefix=OP --strict-whitespace
// RUN: %braid-opt %t.mlir --allow-unregistered-dialect | filecheck %s --check-prefix=ALLOWED
// RUN: printf 'func.func private @f(!no.type)' | not %braid-opt 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: printf 'func.func private @f(vector<-1xf32>)' | not %braid-opt 2>&1 | filecheck %s --check-prefix=SHAPE
// RUN: not %braid-opt %t.does-not-exist 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: not %braid-opt %S 2>&1 | filecheck %s --check-prefix=DIRECTORY

// TRUNCATED: mlir:1:14: error:
// BINARY:    mlir: error: expected MLIR text, but byte 0 is not UTF-8
// BYTECODE:  mlir: error: expected MLIR text, but this is MLIR bytecode
// BYTECODE:  hint: convert it with 'mlir-opt
// OP:        mlir:1:{{[0-9]+}}: error: op 'no.such' is not registered
// OP-NEXT:   {{	}}%0 = "no.such"() : () -> i32
// ALLOWED:   %0 = "no.such"() : () -> i32
// TYPE:      <stdin>:1:{{[0-9]+}}: error: {{.*}}no.type
// SHAPE:     <stdin>:1:{{[0-9]+}}: error:
// MISSING:   braid-opt: error: cannot read '{{.*}}does-not-exist': No such file or directory
// DIRECTORY: braid-opt: error: cannot read '{{.*}}': it is a directory, expected a file
