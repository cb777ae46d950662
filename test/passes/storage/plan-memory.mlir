// RUN: %braid-opt %s -p plan-memory --split-input-file --remarks 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// Lifetimes that do not meet share memory; the result is computed in the caller's buffer, which
// holds another tensor before.
// REMARK: [plan-memory] arena of 64 bytes, lower bound 64, gap 0.000%
// CHECK-LABEL: func.func @chain
// CHECK-SAME:    braid.arena_bytes = 64 
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
func.func @chain(%x: tensor<16xf32>) -> tensor<16xf32> {
  %a = func.call @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
  %c = func.call @k(%b) : (tensor<16xf32>) -> tensor<16xf32>
  %d = func.call @k(%c) : (tensor<16xf32>) -> tensor<16xf32>
  func.return %d : tensor<16xf32>
}
func.func private @k(tensor<16xf32>) -> tensor<16xf32>

// -----

// Equal keys are one weight; blocked layouts count their padding; scratch is in the arena.
// CHECK-LABEL: func.func @weights
// CHECK-SAME:    braid.arena_bytes = 130
// CHECK-SAME:    braid.weights_bytes = 192
// CHECK:         braid.parameter {key = "a", braid.buffers = [#braid.buffer<"weights", 0>]}
// CHECK:         braid.parameter {key = "b", braid.buffers = [#braid.buffer<"weights", 64>]}
// CHECK:         braid.parameter {key = "a", braid.buffers = [#braid.buffer<"weights", 0>]}
// CHECK:         braid.scratch_buffer = #braid.buffer<"arena", 0>
func.func @weights() -> tensor<1xf32> {
  %0 = braid.parameter {key = "a"} : tensor<1xf32>
  %1 = braid.parameter {key = "b"} : tensor<1x17xf32, #braid.layout<"aB16b">>
  %2 = braid.parameter {key = "a"} : tensor<1xf32>
  %y = func.call @k(%0, %1, %2) : (tensor<1xf32>, tensor<1x17xf32, #braid.layout<"aB16b">>, tensor<1xf32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}
func.func private @k(tensor<1xf32>, tensor<1x17xf32, #braid.layout<"aB16b">>, tensor<1xf32>) -> tensor<1xf32> attributes {braid.scratch_bytes = 130 : i64}

// -----

// Transformed windows, and values converted from 16 bits, are stored in their original form and
// expanded when the model is loaded. Values smaller than a page are stored completely.
// CHECK-LABEL: func.func @expanded
// CHECK-SAME:    braid.weights_bytes = 41216
// CHECK-SAME:    braid.expanded_bytes = 155648
// CHECK:         braid.parameter {key = "windows", braid.stored_buffer = #braid.buffer<"weights", 0>, braid.buffers = [#braid.buffer<"expanded", 0>]}
// CHECK:         braid.parameter {key = "prepared/0", braid.stored_buffer = #braid.buffer<"weights", 36864>, braid.stored_type = f16, braid.buffers = [#braid.buffer<"expanded", 147456>]}
// CHECK:         braid.parameter {key = "prepared/1", braid.buffers = [#braid.buffer<"weights", 40960>]}
func.func @expanded() -> tensor<1xf32> {
  %0 = braid.parameter {key = "windows"} : tensor<32x32x3x3xf32, #braid.layout<"Acdb16a:winograd4">>
  %1 = braid.parameter {key = "prepared/0"} : tensor<32x64xf32>
  %2 = braid.parameter {key = "prepared/1"} : tensor<64xf32>
  %y = func.call @k(%0, %1, %2) : (tensor<32x32x3x3xf32, #braid.layout<"Acdb16a:winograd4">>, tensor<32x64xf32>, tensor<64xf32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}
func.func private @k(tensor<32x32x3x3xf32, #braid.layout<"Acdb16a:winograd4">>, tensor<32x64xf32>, tensor<64xf32>) -> tensor<1xf32>
func.func private @prepare() -> (tensor<32x64xf32>, tensor<64xf32>) attributes {braid.keys = ["prepared/0", "prepared/1"]} {
  %0 = braid.parameter {key = "w"} : tensor<64x32xf16>
  %1 = braid.parameter {key = "b"} : tensor<64xf16>
  %2 = braid.cast %0 : (tensor<64x32xf16>) -> tensor<64x32xf32>
  %3 = braid.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %4 = braid.cast %1 : (tensor<64xf16>) -> tensor<64xf32>
  func.return %3, %4 : tensor<32x64xf32>, tensor<64xf32>
}

// -----

// Exclusive branches share memory, write the result where it is wanted, and a loop carries its
// value in place once the old one is not read any more.
// CHECK-LABEL: func.func @control_flow
// CHECK-SAME:    braid.arena_bytes = 16 
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         scf.for
// CHECK:           func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:1", 0>]}
// CHECK:           func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         } {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         scf.if
// CHECK:           func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:1", 0>]}
// CHECK:         } else {
// CHECK:           func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:           func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"output:1", 0>]}
func.func @control_flow(%x: tensor<4xf32>, %c: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %i = func.call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %l = scf.for %n = %zero to %five step %one iter_args(%s = %i) -> (tensor<4xf32>) {
    %a = func.call @k(%s) : (tensor<4xf32>) -> tensor<4xf32>
    %b = func.call @k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  %p = tensor.extract %c[] : tensor<i1>
  %r = scf.if %p -> (tensor<4xf32>) {
    %a = func.call @k(%l) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  } else {
    %a = func.call @k(%l) : (tensor<4xf32>) -> tensor<4xf32>
    %b = func.call @k(%a) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  func.return %l, %r : tensor<4xf32>, tensor<4xf32>
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32>

// -----

// Values that trade places go through staging buffers.
// CHECK-LABEL: func.func @swap
// CHECK:         scf.yield {braid.staging_buffers = [#braid.buffer<"arena", {{[0-9]+}}>, #braid.buffer<"arena", {{[0-9]+}}>]} %{{.*}}, %{{.*}} :
func.func @swap(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %a, %b = scf.for %n = %zero to %five step %one iter_args(%s = %x, %t = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    scf.yield %t, %s : tensor<4xf32>, tensor<4xf32>
  }
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// A result takes the memory of an operand that dies, if the kernel may work in place; a loop's
// value is then computed in its own memory, although it is read until the end.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME:    braid.arena_bytes = 64 
// CHECK:         func.call @k(%{{.*}}, %{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         func.call @k(%{{.*}}, %{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @k(%{{.*}}, %{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @k(%{{.*}}, %{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         scf.for
// CHECK-NEXT:      func.call @k(%{{.*}}, %{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK-NEXT:      scf.yield %{{.*}}
func.func @in_place(%x: tensor<16xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %five = arith.constant 5 : index
  %a = func.call @k(%x, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @k(%a, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %c = func.call @k(%b, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %d = func.call @k(%a, %c) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %l = scf.for %n = %zero to %five step %one iter_args(%s = %d) -> (tensor<16xf32>) {
    %e = func.call @k(%s, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    scf.yield %e : tensor<16xf32>
  }
  func.return %l : tensor<16xf32>
}
func.func private @k(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {braid.in_place = [array<i64: 0, 0>]}

// -----

// The results of copies are in other memories, which have separate arenas; so are values of another
// backend.
// REMARK: [plan-memory] arena of 8 bytes in npu.L0C, lower bound 8, gap 0.000%
// CHECK-LABEL: func.func @memories
// CHECK-SAME:    braid.arena_bytes = 16 
// CHECK-SAME:    braid.arenas = {npu.UB = 80 : i64, npu.L0C = 8 : i64}
// CHECK:         func.call @k(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @k(%{{.*}}) {braid.memory = "npu.UB", braid.buffers = [#braid.buffer<"arena:npu.UB", 0>]}
// CHECK:         func.call @k(%{{.*}}) {braid.memory = "npu.UB", braid.buffers = [#braid.buffer<"arena:npu.UB", 64>]}
// CHECK:         braid.copy %{{.*}} {memory = "npu.L0C", braid.buffers = [#braid.buffer<"arena:npu.L0C", 0>]}
func.func @memories(%x: tensor<4xf32>) -> tensor<2xf32> {
  %a = func.call @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @k(%a) {braid.memory = "npu.UB"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @k(%b) {braid.memory = "npu.UB"} : (tensor<4xf32>) -> tensor<4xf32>
  %d = func.call @small(%c) : (tensor<4xf32>) -> tensor<2xf32>
  %e = braid.copy %d {memory = "npu.L0C"} : (tensor<2xf32>) -> tensor<2xf32>
  %f = func.call @same(%e) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %f : tensor<2xf32>
}
func.func private @k(tensor<4xf32>) -> tensor<4xf32>
func.func private @small(tensor<4xf32>) -> tensor<2xf32>
func.func private @same(tensor<2xf32>) -> tensor<2xf32>

// -----

// The second device of a kind has memories of its own, named by the device.
module attributes {braid.target = #braid.target<"host-2">} {
  // CHECK-LABEL: func.func @second_device
  // CHECK:         func.call @k(%{{.*}}) {braid.device = "cpu:1", braid.buffers = [#braid.buffer<"arena:cpu:1.main", 0>]}
  func.func @second_device(%x: tensor<16xf32>) -> tensor<16xf32> {
    %a = func.call @k(%x) {braid.device = "cpu:1"} : (tensor<16xf32>) -> tensor<16xf32>
    %b = func.call @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
    func.return %b : tensor<16xf32>
  }
  func.func private @k(tensor<16xf32>) -> tensor<16xf32>
}
