// RUN: %braid-opt %s -p plan-memory --split-input-file | filecheck %s
// RUN: sed 's/braid.inter_op_streams = 2/braid.inter_op_streams = 1/' %s > %t.mlir
// RUN: %braid-opt %t.mlir -p plan-memory --split-input-file | filecheck %s --check-prefix=ONE

// Values that are live on different streams do not share bytes, even if the last read of the one
// precedes the write of the other in program order; on one stream they do.
// ONE-LABEL: func.func @beside
// ONE-SAME:      braid.arena_bytes = 128
// CHECK-LABEL: func.func @beside
// CHECK-SAME:      braid.arena_bytes = 192
// CHECK:           func.call @k(%x) {{.*}}#braid.buffer<"output:0", 0>
// CHECK-DAG:       #braid.buffer<"arena", 0>
// CHECK-DAG:       #braid.buffer<"arena", 64>
// CHECK-DAG:       #braid.buffer<"arena", 128>
// CHECK:           func.call @join
func.func @beside(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %0 = func.call @k(%x) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @k(%0) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %2 = func.call @k(%x) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %3 = func.call @k(%2) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %4 = func.call @join(%1, %3) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return %4 : tensor<16xf32>
}
func.func private @k(tensor<16xf32>) -> tensor<16xf32>
func.func private @join(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>

// -----

// Behind a join all of it is free again: four tensors in the bytes of two.
// ONE-LABEL: func.func @joined
// ONE-SAME:      braid.arena_bytes = 128
// CHECK-LABEL: func.func @joined
// CHECK-SAME:      braid.arena_bytes = 128
func.func @joined(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %0 = func.call @k(%x) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @k(%x) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %2 = func.call @join(%0, %1) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %3 = func.call @k(%2) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %4 = func.call @k(%2) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %5 = func.call @join(%3, %4) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return %5 : tensor<16xf32>
}
func.func private @k(tensor<16xf32>) -> tensor<16xf32>
func.func private @join(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>

// -----

// A call of another stream is as good as a join for those that wait for it: the memory of what it
// reads is free for its stream and behind it.
// CHECK-LABEL: func.func @waited_for
// CHECK-SAME:      braid.arena_bytes = 128
func.func @waited_for(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %0 = func.call @k(%x) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @k(%0) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %2 = func.call @k(%1) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %3 = func.call @k(%2) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %4 = func.call @k(%3) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %5 = func.call @k(%4) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %6 = func.call @join(%5, %4) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return %6 : tensor<16xf32>
}
func.func private @k(tensor<16xf32>) -> tensor<16xf32>
func.func private @join(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>

// -----

// A kernel writes over its operand only where all that reads it is known to be done: the call on
// the other stream is not.
// ONE-LABEL: func.func @in_place
// ONE:           %[[A:.*]] = func.call @k(%x) {braid.buffers = [#braid.buffer<"[[SPACE:.*]]", [[OFFSET:.*]]>]}
// ONE:           func.call @k(%[[A]])
// ONE:           func.call @k(%[[A]]) {{.*}}#braid.buffer<"[[SPACE]]", [[OFFSET]]>
// CHECK-LABEL: func.func @in_place
// CHECK:           %[[A:.*]] = func.call @k(%x) {braid.buffers = [#braid.buffer<"output:0", 0>]}
// CHECK:           func.call @k(%[[A]]) {{.*}}#braid.buffer<"arena",
// CHECK:           func.call @k(%[[A]]) {{.*}}#braid.buffer<"arena",
// CHECK:           func.call @join
func.func @in_place(%x: tensor<16xf32>) -> tensor<16xf32> attributes {braid.inter_op_streams = 2 : i64} {
  %0 = func.call @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = func.call @k(%0) {braid.inter_op_stream = 0 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %2 = func.call @k(%0) {braid.inter_op_stream = 1 : i64} : (tensor<16xf32>) -> tensor<16xf32>
  %3 = func.call @join(%1, %2) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  func.return %3 : tensor<16xf32>
}
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {braid.in_place = [array<i64: 0, 0>]}
func.func private @join(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
