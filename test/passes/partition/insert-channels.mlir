// How many requests may be between which launches, so that the busiest device never waits.

// RUN: %braid-opt %s -p insert-channels --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: %braid-opt %s -p insert-channels --split-input-file | %braid-opt --split-input-file | FileCheck %s
// RUN: %braid-opt %s -p 'insert-channels{extra=1}' --split-input-file | FileCheck %s --check-prefix=MORE

// Two cores in turn: one computes a and c, and both are busy all the time. What the function returns
// is in the caller's buffer.
// REMARK: 3 stages on cpu:0, cpu:1: a result each 2.000 ms, busiest is cpu:0 with 2.000 ms; 2 channels of 2 to 2 slots, 4 KiB; 4 requests
// CHECK-LABEL: func.func @main
// CHECK-SAME:    braid.requests = 4 : i64
// CHECK:         @a(%x) {braid.slots = array<i64: 2>, braid.stage_seconds = 1.000000e-03 : f64}
// CHECK:         @b(%a) {braid.slots = array<i64: 2>, braid.stage_seconds = 2.000000e-03 : f64}
// CHECK:         @c(%b, %a) {braid.slots = array<i64: 0>
// MORE-LABEL:  func.func @main
// MORE-SAME:     braid.requests = 5 : i64
// MORE:          @a(%x) {braid.slots = array<i64: 3>
!t = tensor<256xf32>
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @main(%x: !t) -> !t {
    %a, %s = braid.launch async [] @a(%x) : (!t) -> !t
    %b, %t = braid.launch async [%s] @b(%a) : (!t) -> !t
    %c, %u = braid.launch async [%t] @c(%b, %a) : (!t, !t) -> !t
    %y = braid.await [%u] %c : (!t) -> !t
    func.return %y : !t
  }
  func.func private @a(%0: !t) -> !t attributes {braid.device = "cpu:0"} {
    %1 = braid.opaque "a"(%0) {cost = 1.0e-3 : f64} : (!t) -> !t
    func.return %1 : !t
  }
  func.func private @b(%0: !t) -> !t attributes {braid.device = "cpu:1"} {
    %1 = braid.opaque "b"(%0) {cost = 2.0e-3 : f64} : (!t) -> !t
    func.return %1 : !t
  }
  func.func private @c(%0: !t, %1: !t) -> !t attributes {braid.device = "cpu:0"} {
    %2 = braid.opaque "c"(%0, %1) {cost = 1.0e-3 : f64} : (!t, !t) -> !t
    func.return %2 : !t
  }
}

// -----

// Control flow becomes a function of the host, and so a stage; it computes its own condition, and
// launches its inner functions. Its results are read by the next launch, which waits for it.
// CHECK-LABEL: func.func @branches
// CHECK-SAME:    braid.requests = 4 : i64
// CHECK-NEXT:    %[[B:.*]], %[[T:.*]] = braid.launch async [] @f(%x) {braid.slots = array<i64: 2>
// CHECK-NEXT:    %[[D:.*]], %[[U:.*]] = braid.launch async [%[[T]]] @host_0(%p, %[[B]]) {braid.slots = array<i64: 2>
// CHECK-NEXT:    %[[E:.*]], %[[V:.*]] = braid.launch async [%[[U]]] @f(%[[D]]) {braid.slots = array<i64: 0>
// CHECK-NEXT:    %[[R:.*]] = braid.await [%[[V]]] %[[E]]
// CHECK-NEXT:    func.return %[[R]]
// CHECK-LABEL: func.func private @host_0
// CHECK-SAME:    attributes {braid.device = "cpu:0", braid.host_stage}
// CHECK-NEXT:    %[[P:.*]] = tensor.extract
// CHECK-NEXT:    scf.if %[[P]]
// CHECK:           braid.launch async [] @f
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @branches(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %b, %t = braid.launch async [] @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %c = braid.await [%t] %b : (tensor<4xf32>) -> tensor<4xf32>
    %q = tensor.extract %p[] : tensor<i1>
    %d = scf.if %q -> (tensor<4xf32>) {
      %i, %u = braid.launch async [] @f(%c) : (tensor<4xf32>) -> tensor<4xf32>
      %j = braid.await [%u] %i : (tensor<4xf32>) -> tensor<4xf32>
      scf.yield %j : tensor<4xf32>
    } else {
      scf.yield %c : tensor<4xf32>
    }
    %e, %v = braid.launch async [] @f(%d) : (tensor<4xf32>) -> tensor<4xf32>
    %f = braid.await [%v] %e : (tensor<4xf32>) -> tensor<4xf32>
    func.return %f : tensor<4xf32>
  }
  func.func private @f(%0: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "cpu:1"} {
    %1 = braid.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
    func.return %1 : tensor<4xf32>
  }
}

// -----

// A condition that is not a tensor cannot be an operand of a launch: streams run this as a whole.
// CHECK-LABEL: func.func @scalar
// CHECK-NOT:     braid.slots
module attributes {braid.target = #braid.target<"host-2">} {
  func.func @scalar(%x: tensor<4xf32>, %p: i1) -> tensor<4xf32> {
    %b, %t = braid.launch async [] @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %c = braid.await [%t] %b : (tensor<4xf32>) -> tensor<4xf32>
    %d = scf.if %p -> (tensor<4xf32>) {
      scf.yield %c : tensor<4xf32>
    } else {
      scf.yield %x : tensor<4xf32>
    }
    func.return %d : tensor<4xf32>
  }
  func.func private @f(%0: tensor<4xf32>) -> tensor<4xf32> attributes {braid.device = "cpu:0"} {
    func.return %0 : tensor<4xf32>
  }
}
