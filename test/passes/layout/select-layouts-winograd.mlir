// RUN: %braid-opt %s -p select-fusion,apply-fusion,select-layouts,apply-layouts | filecheck %s
// RUN: env BRAID_NUMERICS=strict %braid-opt %s -p select-fusion,apply-fusion,select-layouts,apply-layouts | filecheck %s --check-prefix=STRICT
// RUN: not env BRAID_NUMERICS=exact %braid-opt %s -p select-fusion,apply-fusion,select-layouts 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Winograd's algorithms want the weight transformed, which is done at compile time: of the parameter,
// but not of the argument.
// CHECK:     [[W:%.+]] = braid.reorder %{{.*}} -> tensor<64x64x3x3xf32, #braid.layout<"Acdb{{[0-9]+}}a:winograd{{[24]}}">>
// CHECK:     braid.fused(%{{.*}}, [[W]])
// CHECK:     braid.conv {{.*}}winograd{{.*}}
// CHECK-NOT: winograd
// CHECK:     return

// STRICT-NOT: winograd

// UNKNOWN: error: BRAID_NUMERICS of the environment: numerics are 'exact', expected one of strict, fast
func.func @main(%x: tensor<1x64x30x30xf32>, %v: tensor<64x64x3x3xf32>) -> tensor<1x64x26x26xf32> {
  %w = braid.parameter {key = "w"} : tensor<64x64x3x3xf32>
  %y = braid.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
  %z = braid.conv %y, %v {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, groups = 1 : i64} : (tensor<1x64x28x28xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x26x26xf32>
  func.return %z : tensor<1x64x26x26xf32>
}
