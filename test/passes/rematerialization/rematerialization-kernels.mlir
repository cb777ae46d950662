// RUN: %braid-opt %s -p "select-rematerialization{tensor-threshold=1KiB},apply-rematerialization,select-fusion,apply-fusion,outline-kernels,plan-memory" | filecheck %s

// The large tensor is made anew for each of two equal readers: they share one kernel, and no
// buffer holds it. In the arena is what one kernel hands to the next.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    braid.arena_bytes = 64 : i64
// CHECK:         func.call @kernel_0(%a, %b)
// CHECK:         func.call @kernel_0(
// CHECK:       func.func private @kernel_0
// CHECK-NOT:   func.func private
func.func @main(%a: tensor<16x1xf32>, %b: tensor<1x64xf32>) -> tensor<16x1xf32> {
  %0 = braid.mul %a, %b {braid.name = "outer0"} : (tensor<16x1xf32>, tensor<1x64xf32>) -> tensor<16x64xf32>
  %1 = braid.reduce %0 {braid.name = "rows0", kind = "maximum", dims = array<i64: 1>} : (tensor<16x64xf32>) -> tensor<16x1xf32>
  %2 = braid.mul %1, %b {braid.name = "outer1"} : (tensor<16x1xf32>, tensor<1x64xf32>) -> tensor<16x64xf32>
  %3 = braid.reduce %2 {braid.name = "rows1", kind = "maximum", dims = array<i64: 1>} : (tensor<16x64xf32>) -> tensor<16x1xf32>
  func.return %3 : tensor<16x1xf32>
}
