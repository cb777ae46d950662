// RUN: %braid compile %s --emit=linalg | FileCheck %s

// Rows are contiguous in both tensors, so that 3 rows of 7 are one row of 21; what is left over
// after whole vectors is read and written under a mask.

func.func @main(%x: tensor<3x7xf32> {braid.name = "x"}) -> (tensor<3x7xf32> {braid.name = "y"}) {
  %0 = braid.neg %x : (tensor<3x7xf32>) -> tensor<3x7xf32>
  return %0 : tensor<3x7xf32>
}

// The result may be the operand, so neither is noalias.
// CHECK: func.func @kernel_0(%{{.*}}: memref<3x7xf32>, %{{.*}}: memref<3x7xf32>, 
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [21]
// CHECK: %[[MASK:.*]] = vector.create_mask
// CHECK: %[[X:.*]] = vector.maskedload %{{.*}}, %[[MASK]]
// CHECK: %[[Y:.*]] = arith.negf %[[X]]
// CHECK: vector.maskedstore %{{.*}}, %[[MASK]], %[[Y]]
