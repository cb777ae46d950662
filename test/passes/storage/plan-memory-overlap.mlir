// RUN: %braid-opt %s -p plan-memory --split-input-file | FileCheck %s

// What a kernel writes over begins where the result does: in the output, or in the arena.
// CHECK-LABEL: func.func @output
// CHECK-SAME:    braid.arena_bytes = 0 
// CHECK:         func.call @small(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         func.call @grow(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
func.func @output(%x: tensor<16xf32>) -> tensor<64xf32> {
  %a = func.call @small(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @grow(%a) : (tensor<16xf32>) -> tensor<64xf32>
  func.return %b : tensor<64xf32>
}
func.func private @small(tensor<16xf32>) -> tensor<16xf32>
func.func private @grow(tensor<16xf32>) -> tensor<64xf32> attributes {braid.overlap = 0 : i64}

// -----

// Three tensors begin at one address, each in the next one.
// CHECK-LABEL: func.func @arena
// CHECK-SAME:    braid.arena_bytes = 1024 : i64, braid.arena_bound = 1024
// CHECK:         func.call @small(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", [[AT:.*]]>]}
// CHECK:         func.call @grow(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", [[AT]]>]}
// CHECK:         func.call @grow_more(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", [[AT]]>]}
func.func @arena(%x: tensor<16xf32>) -> tensor<1xf32> {
  %a = func.call @small(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @grow(%a) : (tensor<16xf32>) -> tensor<64xf32>
  %c = func.call @grow_more(%b) : (tensor<64xf32>) -> tensor<256xf32>
  %d = func.call @shrink(%c) : (tensor<256xf32>) -> tensor<1xf32>
  func.return %d : tensor<1xf32>
}
func.func private @small(tensor<16xf32>) -> tensor<16xf32>
func.func private @grow(tensor<16xf32>) -> tensor<64xf32> attributes {braid.overlap = 0 : i64}
func.func private @grow_more(tensor<64xf32>) -> tensor<256xf32> attributes {braid.overlap = 0 : i64}
func.func private @shrink(tensor<256xf32>) -> tensor<1xf32>

// -----

// An input stays, and so does a value that is read again, directly or through a view, or twice by
// one call.
// CHECK-LABEL: func.func @kept
// CHECK-SAME:    braid.arena_bytes = 64 
// CHECK:         %[[A:.*]] = func.call @small(%{{.*}}) {braid.buffers = [#braid.buffer<"output:2", 0>]}
// CHECK:         func.call @grow(%{{.*}}, %[[A]]) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:         func.call @grow(%[[A]], %{{.*}}) {braid.buffers = [#braid.buffer<"output:1", 0>]}
// CHECK:         %[[F:.*]] = func.call @small(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @grow(%[[F]], %[[F]]) {braid.buffers = [#braid.buffer<"output:2", 0>]}
func.func @kept(%x: tensor<16xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>) {
  %a = func.call @small(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %b = func.call @grow(%x, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<64xf32>
  %c = func.call @grow(%a, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<64xf32>
  %v = braid.reshape %a : (tensor<16xf32>) -> tensor<4x4xf32>
  %w = braid.reshape %v : (tensor<4x4xf32>) -> tensor<16xf32>
  %e = func.call @small(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %f = func.call @small(%e) : (tensor<16xf32>) -> tensor<16xf32>
  %g = func.call @grow(%f, %f) : (tensor<16xf32>, tensor<16xf32>) -> tensor<64xf32>
  func.return %b, %c, %g, %e : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<16xf32>
}
func.func private @small(tensor<16xf32>) -> tensor<16xf32>
func.func private @grow(tensor<16xf32>, tensor<16xf32>) -> tensor<64xf32> attributes {braid.overlap = 0 : i64}

// -----

// A tensor that needs more than the alignment of the output's elements begins at the next multiple
// of 64.
// CHECK-LABEL: func.func @aligned
// CHECK-SAME:    braid.arena_bytes = 64 
// CHECK:         func.call @widen(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0:aligned", 0>]}
// CHECK:         func.call @narrow(%{{.*}}) {braid.buffers = [#braid.buffer<"arena", 0>]}
// CHECK:         func.call @last(%{{.*}}) {braid.buffers = [#braid.buffer<"output:0", 0>]}
func.func @aligned(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = func.call @widen(%x) : (tensor<64xf32>) -> tensor<16xf64>
  %b = func.call @narrow(%a) : (tensor<16xf64>) -> tensor<16xf32>
  %c = func.call @last(%b) : (tensor<16xf32>) -> tensor<64xf32>
  func.return %c : tensor<64xf32>
}
func.func private @widen(tensor<64xf32>) -> tensor<16xf64>
func.func private @narrow(tensor<16xf64>) -> tensor<16xf32>
func.func private @last(tensor<16xf32>) -> tensor<64xf32>
