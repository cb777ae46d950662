// The texts of braid-opt; which passes it lists is in test/passes/pipeline/registry.mlir.

// RUN: %braid-opt --help | FileCheck %s
// RUN: %braid-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// RUN: %braid-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: not %braid-opt --help 2>&1 >/dev/full | FileCheck %s --check-prefix=FULL
// A reader that goes away, as `head` does, is not a bug of braid.
// RUN: sh -c "%braid-opt --help 2>%t.err | true"
// RUN: test ! -s %t.err

// CHECK:         usage: braid-opt
// CHECK:         --split-input-file
// CHECK:         passes of braid:
// DIALECTS:      {{^braid$}}
// DIALECTS:      {{^arith$}}
// DIALECTS:      {{^scf$}}
// VERSION:       braid-opt {{[0-9]+\.[0-9]+}}
// FULL:          braid-opt: error: cannot write to standard output: No space left on device
