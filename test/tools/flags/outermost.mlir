// RUN: %braid-opt %s --no-implicit-module | FileCheck %s
// RUN: %braid-opt %s | FileCheck %s --check-prefix=MODULE
// RUN: not %braid-opt %s --no-implicit-module --cse 2>&1 | FileCheck %s --check-prefix=PASS
// RUN: not %braid-opt %S/spelling.mlir %s 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not %braid-opt %S/printing.mlir --no-implicit-module 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: sh -c "echo 'module { func.func private @g() }'" | %braid-opt --no-implicit-module --cse | FileCheck %s --check-prefix=EXPLICIT

// CHECK-NOT:  module
// CHECK:      {{^}}func.func private @f()
// MODULE:     builtin.module {
// PASS:       error: pass 'cse' runs on a module, and the outermost op is 'func.func'
// TWO:        unrecognized arguments
// SEVERAL:    error: the input has 2 outermost ops, and --no-implicit-module takes one
// EXPLICIT:   builtin.module {
func.func private @f()
