// RUN: %braid compile %s --emit=linalg | FileCheck %s

// A product with a bias: accumulators are carried through one loop over K, the bias is added while
// they are in registers, and every element of the result is stored once.

func.func @main(%a: tensor<4x24xf32> {braid.name = "a"}, %b: tensor<24x32xf32> {braid.name = "b"},
                %bias: tensor<1x32xf32> {braid.name = "bias"})
    -> (tensor<4x32xf32> {braid.name = "y"}) {
  %0 = braid.matmul %a, %b : (tensor<4x24xf32>, tensor<24x32xf32>) -> tensor<4x32xf32>
  %1 = braid.add %0, %bias : (tensor<4x32xf32>, tensor<1x32xf32>) -> tensor<4x32xf32>
  return %1 : tensor<4x32xf32>
}

// CHECK: func.func @kernel_0(%{{.*}}: memref<4x24xf32> {llvm.noalias}
// CHECK-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// CHECK-NOT: vector.store
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: scf.for %{{.*}} iter_args({{.*}}) -> (vector<{{[0-9]+}}xf32>
// CHECK: vector.load
// CHECK: vector.broadcast
// CHECK: scf.yield
// CHECK: %[[BIAS:.*]] = vector.load
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[BIAS]] : vector<{{[0-9]+}}xf32>
// CHECK: vector.store %[[SUM]]
