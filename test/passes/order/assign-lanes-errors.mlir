// RUN: not %braid-opt %s -p 'assign-lanes{lanes=0}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'assign-lanes{target=npu-small}' 2>&1 | filecheck %s --check-prefix=POOL
// RUN: not %braid-opt %s -p plan-memory 2>&1 | filecheck %s --check-prefix=LANE
// RUN: sed 's/lanes = 2/lanes = 0/' %s > %t.mlir && not %braid-opt %t.mlir -p plan-memory 2>&1 | filecheck %s --check-prefix=LANES

// NONE: error: there are 0 lanes, expected at least 1
// POOL: error: target 'npu-small' has no processors that run ops side by side: backend 'npu' has no pool
// POOL: hint: {{.*}} to the target, or use one lane
// LANES: error: braid.lanes is 0, expected at least 1
// LANE: [[# @LINE + 2]]:{{.*}}: error: braid.lane is 2, expected one of the function's 2 lanes, counted from 0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.lanes = 2 : i64} {
  %0 = func.call @kernel(%x) {braid.lane = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32>
