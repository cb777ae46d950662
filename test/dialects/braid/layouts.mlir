// RUN: %braid-opt %s | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | %braid-opt | FileCheck %s
// RUN: %braid-opt %s --print-op-generic | FileCheck %s --check-prefix=GENERIC

// An alias is printed as its tag, and row-major is printed as no encoding if it was so.
// CHECK-LABEL: @reorder
// CHECK-SAME:    %x: tensor<1x64x8x8xf32, #braid.layout<"acdb">>
// CHECK:         braid.reorder %x : (tensor<1x64x8x8xf32, #braid.layout<"acdb">>) -> tensor<1x64x8x8xf32, #braid.layout<"aBcd16b">>
// CHECK:         braid.reorder %{{.*}} : (tensor<1x64x8x8xf32, #braid.layout<"aBcd16b">>) -> tensor<1x64x8x8xf32, #braid.layout<"abcd:buffer">>
// CHECK:         braid.reorder %{{.*}} : (tensor<1x64x8x8xf32, #braid.layout<"abcd:buffer">>) -> tensor<1x64x8x8xf32>
// GENERIC:       "braid.reorder"(%x) : (tensor<1x64x8x8xf32, #braid.layout<"acdb">>) -> tensor<1x64x8x8xf32, #braid.layout<"aBcd16b">>
func.func @reorder(%x: tensor<1x64x8x8xf32, #braid.layout<"NHWC">>) -> tensor<1x64x8x8xf32> {
  %0 = braid.reorder %x : (tensor<1x64x8x8xf32, #braid.layout<"NHWC">>) -> tensor<1x64x8x8xf32, #braid.layout<"NCHW16c">>
  %1 = braid.reorder %0 : (tensor<1x64x8x8xf32, #braid.layout<"NCHW16c">>) -> tensor<1x64x8x8xf32, #braid.layout<"NCHW:buffer">>
  %2 = braid.reorder %1 : (tensor<1x64x8x8xf32, #braid.layout<"NCHW:buffer">>) -> tensor<1x64x8x8xf32>
  func.return %2 : tensor<1x64x8x8xf32>
}

// Layouts say nothing about values: every op takes every layout.
// CHECK-LABEL: @any_layout
// CHECK:         braid.matmul %a, %b : (tensor<4x8xf32, #braid.layout<"ba">>, tensor<8x32xf32, #braid.layout<"Ba32b">>) -> tensor<4x32xf32>
func.func @any_layout(%a: tensor<4x8xf32, #braid.layout<"col_major">>, %b: tensor<8x32xf32, #braid.layout<"Ba32b">>) -> tensor<4x32xf32> {
  %0 = braid.matmul %a, %b : (tensor<4x8xf32, #braid.layout<"col_major">>, tensor<8x32xf32, #braid.layout<"Ba32b">>) -> tensor<4x32xf32>
  func.return %0 : tensor<4x32xf32>
}
