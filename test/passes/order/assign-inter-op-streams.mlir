// RUN: %braid-opt %s -p 'assign-inter-op-streams{streams=2},apply-order' --remarks 2>%t.remarks | filecheck %s
// RUN: filecheck %s --input-file %t.remarks --check-prefix=REMARK
// RUN: %braid-opt %s -p 'assign-inter-op-streams{streams=1},apply-order' | filecheck %s --check-prefix=ONE

// The ends take 3 ms / 1.8 on two streams, the branches 5 ms each.
// REMARK: [assign-inter-op-streams] 4 of 7 ops on 2 inter-op streams, cost 0.00667{{[0-9]*}} s, lower bound 0.00667{{[0-9]*}} s, gap 0.0 %, on one stream 0.013{{[0-9]*}} s

// Two branches run concurrently; the ops before and after them run on all streams at once.
// CHECK-LABEL: func.func @main
// CHECK-SAME: braid.inter_op_streams = 2 : i64
// CHECK: "head"(%x) {cost = 2.000000e-03 : f64} :
// CHECK-DAG: "left"(%{{.*}}) {cost = {{.*}}, braid.inter_op_stream = [[LEFT:[01]]] : i64}
// CHECK-DAG: "left.2"(%{{.*}}) {cost = {{.*}}, braid.inter_op_stream = [[LEFT]] : i64}
// CHECK-DAG: "right"(%{{.*}}) {cost = {{.*}}, braid.inter_op_stream = [[RIGHT:[01]]] : i64}
// CHECK-DAG: "right.2"(%{{.*}}) {cost = {{.*}}, braid.inter_op_stream = [[RIGHT]] : i64}
// CHECK: "tail"(%{{.*}}, %{{.*}}) {cost = 1.000000e-03 : f64} :
// CHECK: braid.reshape %{{[0-9]*}} {shape = array<i64: 2, 2>} :

// On one stream nothing is concurrent.
// ONE-LABEL: func.func @main
// ONE-SAME: braid.inter_op_streams = 1 : i64
// ONE-NOT: braid.inter_op_stream =
func.func @main(%x: tensor<4xf32>) -> tensor<2x2xf32> {
  %0 = braid.opaque "head"(%x) {cost = 2.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = braid.opaque "left"(%0) {cost = 2.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = braid.opaque "left.2"(%1) {cost = 3.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = braid.opaque "right"(%0) {cost = 4.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = braid.opaque "right.2"(%3) {cost = 1.0e-3 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = braid.opaque "tail"(%2, %4) {cost = 1.0e-3 : f64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = braid.reshape %5 {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
  func.return %6 : tensor<2x2xf32>
}
