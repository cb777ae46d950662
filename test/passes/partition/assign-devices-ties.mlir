// Between devices without links nothing takes time. Ops are not distributed over them if one has a
// pin to another device.
// RUN: %braid-opt %s -p "assign-devices{target=%S/Inputs/linked.toml pin=op:matmul=core:1},select-clusters{target=%S/Inputs/linked.toml}" --remarks 2>&1 | FileCheck %s

// CHECK: [assign-devices] priority: 25 ops: {{.*}}; transfers and starts 0.02
// CHECK: [select-clusters] starts: 25 → 2 (at least 2)
func.func @main(%x: tensor<8x8xf32>, %i: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = braid.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = braid.tanh %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = braid.exp %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = braid.mul %2, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = braid.exp %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = braid.neg %1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = braid.mul %5, %3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %7 = braid.tanh %6 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %8 = braid.exp %7 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %9 = braid.mul %8, %4 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %10 = braid.neg %3 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %11 = braid.tanh %10 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %12 = braid.mul %11, %6 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %13 = braid.tanh %12 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %14 = braid.exp %13 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %15 = braid.mul %14, %7 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %16 = braid.exp %15 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %17 = braid.tanh %16 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %18 = braid.mul %17, %9 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %19 = braid.tanh %18 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %20 = braid.neg %6 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %21 = braid.mul %20, %10 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %22 = braid.exp %21 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %23 = braid.tanh %22 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %24 = braid.mul %23, %12 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %24, %14, %19 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
