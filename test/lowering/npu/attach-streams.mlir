// Adjacent ops form one stream; control flow, and ops that the chip does not support, run on the
// host. A stream says how often it is expected to run.
// RUN: %braid-opt %s -p 'attach-streams{target=npu-small search-seconds=0}' --remarks -o %t.mlir 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file %t.mlir
// RUN: sed 's/operations = .*/operations = ["braid.neg", "braid.exp"]/' %S/tiny.toml > %t.toml
// RUN: %braid-opt %s -p 'attach-streams{target="%t.toml" search-seconds=0}' -o %t.some.mlir
// RUN: FileCheck %s --check-prefix=SOME --input-file %t.some.mlir
// RUN: not %braid-opt %s -p 'attach-streams{target=host}' 2>&1 | FileCheck %s --check-prefix=HOST

// REMARK: remark: {{.*}}3 subgraphs: {{.*}}; 15 instructions,
// HOST: error: backend 'cpu' has no units that load and store
// CHECK-LABEL: func.func @main
// CHECK-SAME: braid.streams = [{text = "target npu-small\0Aload 0 128 %0 -> 0+128 ; neg#0\0A{{[^{]*}}executions = 1.000000e+00
// CHECK-SAME: {text = "target npu-small\0Aload 0 128 %0 -> 0+128 ; exp#0\0A{{[^{]*}}executions = 2.500000e-01
// CHECK-SAME: {text = "target npu-small\0Aload 0 128 %0 -> 0+128 ; softmax#0\0A{{[^{]*}}executions = 1.000000e+00
// SOME-LABEL: func.func @main
// SOME-SAME: ; neg#0
// SOME-SAME: ; exp#0
// SOME-NOT: softmax#0
func.func @main(%x: tensor<4x8xf32>, %c: tensor<i1>) -> tensor<4x8xf32> {
  %0 = braid.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = tensor.extract %c[] : tensor<i1>
  %1 = scf.if %b -> (tensor<4x8xf32>) {
    %2 = braid.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    scf.yield %2 : tensor<4x8xf32>
  } else {
    scf.yield %0 : tensor<4x8xf32>
  } {braid.branch_probability = 0.25 : f64}
  %y = braid.softmax %1 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
