// RUN: not %braid-opt %s -p 'assign-inter-op-streams{streams=0}' 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not %braid-opt %s -p 'assign-inter-op-streams{target=npu-small}' 2>&1 | filecheck %s --check-prefix=POOL
// RUN: not %braid-opt %s -p plan-memory 2>&1 | filecheck %s --check-prefix=NUMBER
// RUN: sed 's/streams = 2/streams = 0/' %s > %t.mlir && not %braid-opt %t.mlir -p plan-memory 2>&1 | filecheck %s --check-prefix=COUNT

// NONE: error: there are 0 inter-op streams, expected 1 to 256
// POOL: error: target 'npu-small' has no processors that run ops side by side: backend 'npu' has no pool
// POOL: hint: {{.*}} to the target, or use one stream
// COUNT: error: braid.inter_op_streams is 0, expected at least 1
// NUMBER: [[# @LINE + 2]]:{{.*}}: error: braid.inter_op_stream is 2, expected one of the function's 2 streams, counted from 0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %0 = func.call @kernel(%x) {braid.inter_op_stream = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
func.func private @kernel(tensor<4xf32>) -> tensor<4xf32>
