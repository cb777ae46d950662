// A text without ops is an empty module, as in mlir-opt; of all devices, /dev/null is such a text.

// RUN: %braid-opt %s | FileCheck %s
// RUN: %braid-opt < /dev/null | FileCheck %s
// RUN: %braid-opt /dev/null --cse | FileCheck %s
// RUN: %braid-opt /dev/null --verify-roundtrip --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: echo '#map = affine_map<(d0) -> (d0)>' | %braid-opt | FileCheck %s
// RUN: not %braid-opt /dev/zero 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: echo 'func.func @f(' | not %braid-opt 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not %braid-opt --print-dialects 2>&1 | FileCheck %s --check-prefix=NEAREST

// CHECK:        {{^builtin.module {$}}
// CHECK-NEXT:   {{^}$}}
// CHECK-NOT:    {{.}}
// GENERIC:      "builtin.module"()
// DEVICE:       cannot read '/dev/zero': it is a device, expected a file
// HALF:         error: Expected argument or type
// NEAREST:      unrecognized arguments: --print-dialects; did you mean '--show-dialects'?
