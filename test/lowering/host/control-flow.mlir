// RUN: %braid-opt %s -p plan-memory,lower-program | FileCheck %s

// Tensors disappear from control flow; what is handed on is copied where it cannot share.
// CHECK-LABEL: llvm.func @braid_run
// CHECK:         scf.if %{{.*}} {
// CHECK:           llvm.call @k
// CHECK:         } else {
// CHECK:           llvm.call @memcpy
// CHECK:         }
// CHECK:         %[[N:.*]] = scf.while (%[[I:.*]] = %{{.*}}) : (i64) -> i64 {
// CHECK:           %[[STOPPED:.*]] = llvm.call %{{.*}}(%{{.*}}) : !llvm.ptr, (!llvm.ptr) -> i32
// CHECK:           %[[GOES_ON:.*]] = arith.cmpi eq, %[[STOPPED]]
// CHECK:           %[[MORE:.*]] = arith.andi %{{.*}}, %[[GOES_ON]]
// CHECK:           scf.condition(%[[MORE]]) %[[I]] : i64
// CHECK:         } do {
// CHECK:           llvm.call @k
// CHECK:           scf.yield %{{.*}} : i64
// CHECK-NOT:     tensor<
// CHECK:         llvm.store %[[N]]
func.func @main(%x: tensor<4xf32>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<i64>) {
  %p = tensor.extract %c[] : tensor<i1>
  %r = scf.if %p -> (tensor<4xf32>) {
    %a = func.call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %ten = arith.constant 10 : i64
  %w, %n = scf.while (%s = %r, %i = %zero) : (tensor<4xf32>, i64) -> (tensor<4xf32>, i64) {
    %more = arith.cmpi slt, %i, %ten : i64
    scf.condition(%more) %s, %i : tensor<4xf32>, i64
  } do {
  ^bb0(%s: tensor<4xf32>, %i: i64):
    %t = func.call @k(%s) : (tensor<4xf32>) -> tensor<4xf32>
    %next = arith.addi %i, %one : i64
    scf.yield %t, %next : tensor<4xf32>, i64
  }
  %count = tensor.from_elements %n : tensor<i64>
  func.return %w, %count : tensor<4xf32>, tensor<i64>
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32>
