// Launches in the order in which the host, the devices, and the copy engines finish first.
// RUN: %braid-opt %s -p 'search-order{objective=latency launches-only=true target=%S/Inputs/board.toml},apply-order' --split-input-file --verify-decisions --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p 'search-order{objective=memory target=%S/Inputs/board.toml},apply-order' --split-input-file | FileCheck %s --check-prefix=MEMORY

// The device computes @long while what @short needs is copied. The other way round both wait:
// 10 ms + 1 ms + 10 ms.
// REMARK: 4 ops, before 0.021004, cost 0.012004 s, lower bound 0.0{{.*}} s
// CHECK-LABEL: func.func @copies
// CHECK-NEXT:    braid.launch async [] @long(%few)
// CHECK-NEXT:    braid.launch async [] @short(%many)
// CHECK:         braid.await
// CHECK-LABEL: func.func private @short
// Memory does not change what devices run first.
// MEMORY-LABEL: func.func @copies
// MEMORY-NEXT:    braid.launch async [] @short(%many)
// MEMORY-NEXT:    braid.launch async [] @long(%few)
module {
  func.func @copies(%many: tensor<2500000xf32>, %few: tensor<250000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>) {
    %a, %s = braid.launch async [] @short(%many) : (tensor<2500000xf32>) -> tensor<1000xf32>
    %b, %t = braid.launch async [] @long(%few) : (tensor<250000xf32>) -> tensor<1000xf32>
    %c = braid.await [%s] %a : (tensor<1000xf32>) -> tensor<1000xf32>
    %d = braid.await [%t] %b : (tensor<1000xf32>) -> tensor<1000xf32>
    func.return %c, %d : tensor<1000xf32>, tensor<1000xf32>
  }
  func.func private @short(%0: tensor<2500000xf32>) -> tensor<1000xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "short"(%0) {cost = 1.0e-3 : f64} : (tensor<2500000xf32>) -> tensor<1000xf32>
    func.return %1 : tensor<1000xf32>
  }
  func.func private @long(%0: tensor<250000xf32>) -> tensor<1000xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "long"(%0) {cost = 10.0e-3 : f64} : (tensor<250000xf32>) -> tensor<1000xf32>
    func.return %1 : tensor<1000xf32>
  }
}

// -----

// Each device begins with launches that do not depend on the other one.
// REMARK: 6 ops, before 0.004{{.*}}, cost 0.002{{.*}} s
// CHECK-LABEL: func.func @crossed
// CHECK-DAG:     braid.launch async [] @g(%x)
// CHECK-DAG:     braid.launch async [] @n(%y)
// CHECK-NEXT:    braid.launch async [%{{.*}}] @{{[gn]}}(%{{[ab]}})
// CHECK-NEXT:    braid.launch async [%{{.*}}] @{{[gn]}}(%{{[ab]}})
// CHECK-NEXT:    braid.await
// CHECK-NEXT:    braid.await
module {
  func.func @crossed(%x: tensor<10xf32>, %y: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
    %a, %s = braid.launch async [] @g(%x) : (tensor<10xf32>) -> tensor<10xf32>
    %c, %u = braid.launch async [%s] @n(%a) : (tensor<10xf32>) -> tensor<10xf32>
    %b, %t = braid.launch async [] @n(%y) : (tensor<10xf32>) -> tensor<10xf32>
    %d, %v = braid.launch async [%t] @g(%b) : (tensor<10xf32>) -> tensor<10xf32>
    %e = braid.await [%u] %c : (tensor<10xf32>) -> tensor<10xf32>
    %f = braid.await [%v] %d : (tensor<10xf32>) -> tensor<10xf32>
    func.return %e, %f : tensor<10xf32>, tensor<10xf32>
  }
  func.func private @g(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "g"(%0) {cost = 1.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
  func.func private @n(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "npu:0"} {
    %1 = braid.opaque "n"(%0) {cost = 1.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
}

// -----

// A wait, and a loop that launches, keep the host: what they do not need is launched before. The loop
// takes three times as long as its body. Functions that launch nothing are as they were.
// REMARK: 2 ops, before 0.001{{.*}}, cost 0.001{{.*}} s
// REMARK: 4 ops, before 0.008{{.*}}, cost 0.005{{.*}} s, lower bound 0.005
// CHECK-LABEL: func.func @loop
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    arith.constant
// CHECK-NEXT:    %[[B:.*]], %{{.*}} = braid.launch async [] @n(%x)
// CHECK-NEXT:    scf.for
// CHECK:           braid.launch async [] @g
// CHECK-NEXT:      braid.await
// CHECK:         braid.neg
// CHECK-NEXT:    braid.await [%{{.*}}] %[[B]]
// CHECK-NEXT:    func.return
// CHECK-LABEL: func.func @beside
// CHECK-NEXT:    braid.neg
// CHECK-NEXT:    braid.exp
module {
  func.func @loop(%x: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %a = scf.for %i = %zero to %three step %one iter_args(%y = %x) -> (tensor<10xf32>) {
      %c, %s = braid.launch async [] @g(%y) : (tensor<10xf32>) -> tensor<10xf32>
      %d = braid.await [%s] %c : (tensor<10xf32>) -> tensor<10xf32>
      scf.yield %d : tensor<10xf32>
    }
    %n = braid.neg %a : (tensor<10xf32>) -> tensor<10xf32>
    %b, %t = braid.launch async [] @n(%x) : (tensor<10xf32>) -> tensor<10xf32>
    %e = braid.await [%t] %b : (tensor<10xf32>) -> tensor<10xf32>
    func.return %n, %e : tensor<10xf32>, tensor<10xf32>
  }
  func.func @beside(%x: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
    %a = braid.neg %x : (tensor<10xf32>) -> tensor<10xf32>
    %b = braid.exp %x : (tensor<10xf32>) -> tensor<10xf32>
    func.return %a, %b : tensor<10xf32>, tensor<10xf32>
  }
  func.func private @g(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "g"(%0) {cost = 1.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
  func.func private @n(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "npu:0"} {
    %1 = braid.opaque "n"(%0) {cost = 5.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
}

// -----

// What a loop launches waits for what its device was given before, and the host with it: behind
// @long the loop would end after 13 ms, and @n after 23 ms.
// REMARK: 5 ops, before 0.023{{.*}}, cost 0.013{{.*}} s, lower bound 0.013
// CHECK-LABEL: func.func @behind
// CHECK:         scf.for
// CHECK:           braid.launch async [] @g
// CHECK-NEXT:      braid.await
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-DAG:     braid.launch async [] @long
// CHECK-DAG:     braid.launch async [] @n
module {
  func.func @behind(%x: tensor<10xf32>) -> (tensor<10xf32>, tensor<10xf32>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %a, %s = braid.launch async [] @long(%x) : (tensor<10xf32>) -> tensor<10xf32>
    %b = scf.for %i = %zero to %three step %one iter_args(%y = %x) -> (tensor<10xf32>) {
      %c, %t = braid.launch async [] @g(%y) : (tensor<10xf32>) -> tensor<10xf32>
      %d = braid.await [%t] %c : (tensor<10xf32>) -> tensor<10xf32>
      scf.yield %d : tensor<10xf32>
    }
    %e, %u = braid.launch async [] @n(%b) : (tensor<10xf32>) -> tensor<10xf32>
    %f = braid.await [%s] %a : (tensor<10xf32>) -> tensor<10xf32>
    %g = braid.await [%u] %e : (tensor<10xf32>) -> tensor<10xf32>
    func.return %f, %g : tensor<10xf32>, tensor<10xf32>
  }
  func.func private @long(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "long"(%0) {cost = 10.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
  func.func private @g(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "gpu:0"} {
    %1 = braid.opaque "g"(%0) {cost = 1.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
  func.func private @n(%0: tensor<10xf32>) -> tensor<10xf32> attributes {braid.device = "npu:0"} {
    %1 = braid.opaque "n"(%0) {cost = 10.0e-3 : f64} : (tensor<10xf32>) -> tensor<10xf32>
    func.return %1 : tensor<10xf32>
  }
}
