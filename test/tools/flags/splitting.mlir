// RUN: %braid-opt %s --split-input-file='// ====' --output-split-marker='// ++++' | FileCheck %s
// RUN: %braid-opt -split-input-file %s | FileCheck %s --check-prefix=ONE

// CHECK:       func.func private @a
// CHECK:       {{^}}// ++++{{$}}
// CHECK:       func.func private @b
// ONE:         func.func private @a
// ONE-NOT:     // -----
// ONE:         func.func private @b
func.func private @a()
// ====
func.func private @b()
