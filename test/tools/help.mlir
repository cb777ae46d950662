// RUN: %braid-opt --help | filecheck %s
// RUN: %braid-opt --show-dialects | filecheck %s --check-prefix=DIALECTS
// RUN: %braid-opt --version | filecheck %s --check-prefix=VERSION

// CHECK:       usage: braid-opt
// CHECK:       --split-input-file
// CHECK-LABEL: passes of braid:
// CHECK:         canonicalize Folds ops, applies their canonicalization patterns
// CHECK:         cse Merges ops that compute the same
// CHECK-LABEL: named pipelines:
// CHECK:         simplify canonicalize,cse
// CHECK-LABEL: passes of xDSL and installed packages:
// CHECK:         convert-memref-to-ptr
// CHECK-NEXT:      lower-func=<bool> (default false)
// DIALECTS:      {{^braid$}}
// DIALECTS:      {{^arith$}}
// DIALECTS:      {{^scf$}}
// VERSION:       braid-opt {{[0-9]+\.[0-9]+}}
