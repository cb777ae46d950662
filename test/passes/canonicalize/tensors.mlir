// RUN: %braid-opt %s -p canonicalize | filecheck %s

// CHECK-LABEL: @identities
// CHECK-NEXT:    func.return %x, %x, %x, %x, %x, %x, %x, %x
func.func @identities(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  %zero = braid.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %minus_zero = braid.constant {value = dense<-0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %one = braid.constant {value = dense<1.0> : tensor<1x3xf32>} : tensor<1x3xf32>
  %0 = braid.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = braid.cast %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = braid.transpose %x {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = braid.add %minus_zero, %x : (tensor<1x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = braid.mul %x, %one : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  %5 = braid.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = braid.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = braid.sub %x, %zero : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  func.return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// A neutral operand that makes the result larger is needed, and 0 - x is not x.
// CHECK-LABEL: @not_identities
// CHECK:         braid.add
// CHECK:         braid.sub
func.func @not_identities(%x: tensor<1x3xf32>) -> (tensor<2x3xf32>, tensor<1x3xf32>) {
  %zeros = braid.constant {value = dense<0.0> : tensor<2x1xf32>} : tensor<2x1xf32>
  %zero = braid.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %0 = braid.add %x, %zeros : (tensor<1x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %1 = braid.sub %zero, %x : (tensor<1x1xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
  func.return %0, %1 : tensor<2x3xf32>, tensor<1x3xf32>
}

// -0 + 0 and -0 - -0 are 0; integers have one zero.
// CHECK-LABEL: @zeros
// CHECK:         %[[A:.*]] = braid.add %x
// CHECK:         %[[B:.*]] = braid.sub %x
// CHECK:         func.return %[[A]], %[[B]], %n
func.func @zeros(%x: tensor<2xf32>, %n: tensor<2xi32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
  %zero = braid.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
  %minus_zero = braid.constant {value = dense<-0.0> : tensor<1xf32>} : tensor<1xf32>
  %none = braid.constant {value = dense<0> : tensor<1xi32>} : tensor<1xi32>
  %0 = braid.add %x, %zero : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
  %1 = braid.sub %x, %minus_zero : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xf32>
  %2 = braid.add %n, %none : (tensor<2xi32>, tensor<1xi32>) -> tensor<2xi32>
  func.return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>
}

// CHECK-LABEL: @merged
// CHECK-NEXT:    %[[T:.*]] = braid.transpose %x {permutation = array<i64: 2, 1, 0>, braid.name = "t2"}
// CHECK-NEXT:    %[[R:.*]] = braid.reshape %x {{.*}}-> tensor<24xf32>
// CHECK-NEXT:    func.return %x, %[[T]], %[[R]]
func.func @merged(%x: tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<24xf32>) {
  %0 = braid.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = braid.transpose %0 {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %2 = braid.transpose %0 {permutation = array<i64: 1, 0, 2>, braid.name = "t2"} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32>
  %3 = braid.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %4 = braid.reshape %3 : (tensor<6x4xf32>) -> tensor<24xf32>
  func.return %1, %2, %4 : tensor<2x3x4xf32>, tensor<4x3x2xf32>, tensor<24xf32>
}

// CHECK-LABEL: @implicit_broadcast
// CHECK-NEXT:    %[[B:.*]] = braid.broadcast %b
// CHECK-NEXT:    %[[Y:.*]] = braid.add %x, %b : (tensor<2x3xf32>, tensor<1x3xf32>)
// CHECK-NEXT:    %[[Z:.*]] = braid.exp %[[B]]
func.func @implicit_broadcast(%x: tensor<2x3xf32>, %b: tensor<1x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %0 = braid.broadcast %b : (tensor<1x3xf32>) -> tensor<2x3xf32>
  %1 = braid.add %x, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = braid.exp %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}

// Small results are folded; large ones stay expressions.
// CHECK-LABEL: @constants
// CHECK-DAG:     braid.constant {value = dense<[2, 4]> : tensor<2xi64>}
// CHECK-DAG:     braid.broadcast
func.func @constants() -> (tensor<2xi64>, tensor<2048xi64>) {
  %0 = braid.constant {value = dense<[1, 2]> : tensor<2xi64>} : tensor<2xi64>
  %1 = braid.add %0, %0 : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %2 = braid.constant {value = dense<1> : tensor<1xi64>} : tensor<1xi64>
  %3 = braid.broadcast %2 : (tensor<1xi64>) -> tensor<2048xi64>
  func.return %1, %3 : tensor<2xi64>, tensor<2048xi64>
}

// All results of an op are folded, also where an index is outside: the nearest one inside is read.
// Ops that only decide where a tensor is stored stay, and so does an op of which only the costs are
// known.
// CHECK-LABEL: @constant_operands
// CHECK-DAG:     %[[V:.*]] = braid.constant {value = dense<[3.000000e+00, 2.000000e+00]> : tensor<2xf32>}
// CHECK-DAG:     %[[I:.*]] = braid.constant {value = dense<[2, 1]> : tensor<2xi64>}
// CHECK-DAG:     %[[C:.*]] = braid.copy
// CHECK-DAG:     %[[G:.*]] = braid.constant {value = dense<3.000000e+00> : tensor<1xf32>}
// CHECK-DAG:     %[[O:.*]] = braid.opaque
// CHECK-DAG:     %[[R:.*]] = braid.reorder
// CHECK:         func.return %[[V]], %[[I]], %[[C]], %[[G]], %[[O]], %[[R]]
func.func @constant_operands() -> (tensor<2xf32>, tensor<2xi64>, tensor<3xf32>, tensor<1xf32>, tensor<3xf32>, tensor<3x1xf32, #braid.layout<"ba">>) {
  %c = braid.constant {value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>} : tensor<3xf32>
  %m = braid.constant {value = dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>} : tensor<3x1xf32>
  %outside = braid.constant {value = dense<7> : tensor<1xi64>} : tensor<1xi64>
  %v, %i = braid.top_k %c {k = 2 : i64, dim = 0 : i64, largest = true} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %0 = braid.copy %c {memory = "gpu.global"} : (tensor<3xf32>) -> tensor<3xf32>
  %1 = braid.gather %c, %outside {dim = 0 : i64} : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>
  %2 = braid.opaque "f"(%c) {cost = 1.0 : f64} : (tensor<3xf32>) -> tensor<3xf32>
  %3 = braid.reorder %m : (tensor<3x1xf32>) -> tensor<3x1xf32, #braid.layout<"ba">>
  func.return %v, %i, %0, %1, %2, %3 : tensor<2xf32>, tensor<2xi64>, tensor<3xf32>, tensor<1xf32>, tensor<3xf32>, tensor<3x1xf32, #braid.layout<"ba">>
}

// A result may have a dim that the operand leaves open: its type stays.
// CHECK-LABEL: @declared_extents
// CHECK-NEXT:    braid.transpose %x {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT:    braid.pad %x {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT:    braid.transpose %x {permutation = array<i64: 0, 1>} : (tensor<?x4xf32>) -> tensor<2x4xf32>
func.func @declared_extents(%x: tensor<?x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = braid.transpose %x {permutation = array<i64: 0, 1>} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  %1 = braid.pad %x {low = array<i64: 0, 0>, high = array<i64: 0, 0>, value = 0.0 : f32} : (tensor<?x4xf32>) -> tensor<2x4xf32>
  %2 = braid.transpose %x {permutation = array<i64: 1, 0>} : (tensor<?x4xf32>) -> tensor<4x?xf32>
  %3 = braid.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<4x?xf32>) -> tensor<2x4xf32>
  func.return %0, %1, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// Nothing is computed for tensors without elements, and their elements are never read.
// CHECK-LABEL: @empty
// CHECK-DAG:     %[[E:.*]] = braid.constant {value = dense<> : tensor<2x0xf32>}
// CHECK-DAG:     %[[P:.*]] = braid.broadcast %{{.*}} : (tensor<1x1xf32>) -> tensor<2x2048xf32>
// CHECK:         func.return %[[E]], %y, %[[P]], %y
func.func @empty(%x: tensor<2x0xf32>, %y: tensor<2x3xf32>, %i: tensor<0x3xi64>) -> (tensor<2x0xf32>, tensor<2x3xf32>, tensor<2x2048xf32>, tensor<2x3xf32>) {
  %0 = braid.exp %x : (tensor<2x0xf32>) -> tensor<2x0xf32>
  %1 = braid.concat %x, %y {dim = 1 : i64} : (tensor<2x0xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = braid.pad %x {low = array<i64: 0, 2048>, high = array<i64: 0, 0>, value = 1.0 : f32} : (tensor<2x0xf32>) -> tensor<2x2048xf32>
  %3 = braid.cast %i : (tensor<0x3xi64>) -> tensor<0x3xf32>
  %4 = braid.scatter_elements %y, %i, %3 {dim = 0 : i64, reduction = "none"} : (tensor<2x3xf32>, tensor<0x3xi64>, tensor<0x3xf32>) -> tensor<2x3xf32>
  func.return %0, %1, %2, %4 : tensor<2x0xf32>, tensor<2x3xf32>, tensor<2x2048xf32>, tensor<2x3xf32>
}

// Windows lose positions that only read padding.
// CHECK-LABEL: @clipped_windows
// CHECK: braid.pool %{{.*}} {{.*}}window = array<i64: 7, 5>, {{.*}}pad_low = array<i64: 0, 2>, pad_high = array<i64: 0, 1>
func.func @clipped_windows(%x: tensor<1x2x7x4xf32>) -> tensor<1x2x1x3xf32> {
  %0 = braid.pool %x {kind = "add", window = array<i64: 1280, 6>, strides = array<i64: 1280, 1>, dilations = array<i64: 1, 1>, pad_low = array<i64: 0, 3>, pad_high = array<i64: 1273, 1>} : (tensor<1x2x7x4xf32>) -> tensor<1x2x1x3xf32>
  func.return %0 : tensor<1x2x1x3xf32>
}

// Rows that are zeros before a product are zeros behind it; columns are not rows, and minus zero is not zero.
// CHECK-LABEL: @cleared_rows
// CHECK:         %[[P:.*]] = braid.matmul %w, %v {{.*}}-> tensor<2x4x3xf16>
// CHECK:         %[[S:.*]] = braid.select %c, %{{.*}}, %[[P]] {{.*}}braid.name = "s"
// CHECK:         %[[Q:.*]] = braid.matmul %w, %v
// CHECK:         %[[T:.*]] = braid.select %c, %[[Q]], %{{.*}}
// CHECK:         braid.select %k
// CHECK-NEXT:    %[[K:.*]] = braid.matmul
// CHECK:         braid.select %c
// CHECK-NEXT:    %[[M:.*]] = braid.matmul
// CHECK-NEXT:    func.return %[[S]], %[[T]], %[[K]], %[[M]]
func.func @cleared_rows(%c: tensor<1x4x1xi1>, %k: tensor<1x1x5xi1>, %w: tensor<2x4x5xf16>, %v: tensor<1x5x3xf16>) -> (tensor<2x4x3xf16>, tensor<2x4x3xf16>, tensor<2x4x3xf16>, tensor<2x4x3xf16>) {
  %zero = braid.constant {value = dense<0.0> : tensor<1x1x1xf16>} : tensor<1x1x1xf16>
  %minus = braid.constant {value = dense<-0.0> : tensor<1x1x1xf16>} : tensor<1x1x1xf16>
  %0 = braid.select %c, %zero, %w {braid.name = "s"} : (tensor<1x4x1xi1>, tensor<1x1x1xf16>, tensor<2x4x5xf16>) -> tensor<2x4x5xf16>
  %1 = braid.matmul %0, %v : (tensor<2x4x5xf16>, tensor<1x5x3xf16>) -> tensor<2x4x3xf16>
  %2 = braid.select %c, %w, %zero : (tensor<1x4x1xi1>, tensor<2x4x5xf16>, tensor<1x1x1xf16>) -> tensor<2x4x5xf16>
  %3 = braid.matmul %2, %v : (tensor<2x4x5xf16>, tensor<1x5x3xf16>) -> tensor<2x4x3xf16>
  %4 = braid.select %k, %zero, %w : (tensor<1x1x5xi1>, tensor<1x1x1xf16>, tensor<2x4x5xf16>) -> tensor<2x4x5xf16>
  %5 = braid.matmul %4, %v : (tensor<2x4x5xf16>, tensor<1x5x3xf16>) -> tensor<2x4x3xf16>
  %6 = braid.select %c, %minus, %w : (tensor<1x4x1xi1>, tensor<1x1x1xf16>, tensor<2x4x5xf16>) -> tensor<2x4x5xf16>
  %7 = braid.matmul %6, %v : (tensor<2x4x5xf16>, tensor<1x5x3xf16>) -> tensor<2x4x3xf16>
  func.return %1, %3, %5, %7 : tensor<2x4x3xf16>, tensor<2x4x3xf16>, tensor<2x4x3xf16>, tensor<2x4x3xf16>
}

// Which operand a select takes is known; where it would be repeated it stays.
// CHECK-LABEL: @known_selects
// CHECK-NEXT:    %[[Z:.*]] = braid.constant {{.*}}true
// CHECK-NEXT:    %[[S:.*]] = braid.select %[[Z]], %b, %x
// CHECK-NEXT:    return %x, %y, %[[S]]
func.func @known_selects(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>, %b: tensor<1x1xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %t = braid.constant {value = dense<true> : tensor<1x1xi1>} : tensor<1x1xi1>
  %f = braid.constant {value = dense<false> : tensor<1x1xi1>} : tensor<1x1xi1>
  %0 = braid.select %t, %x, %y : (tensor<1x1xi1>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = braid.select %f, %b, %y : (tensor<1x1xi1>, tensor<1x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = braid.select %t, %b, %x : (tensor<1x1xi1>, tensor<1x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// A number that is repeated, however often, stays one through what keeps it: a mask of zeros, and
// the rows that it masks wholly, which are none.
// CHECK-LABEL: @repeated_number
// CHECK-NEXT:    %[[Z:.*]] = braid.constant {value = dense<0.000000e+00> : tensor<1x1x1x1xf32>}
// CHECK-NEXT:    %[[S:.*]] = braid.add %x, %[[Z]]
// CHECK-NEXT:    return %[[S]]
func.func @repeated_number(%x: tensor<1x2x64x1024xf32>) -> tensor<1x2x64x1024xf32> {
  %0 = braid.constant {value = dense<0.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %1 = braid.constant {value = dense<0xff800000> : tensor<1x1xf32>} : tensor<1x1xf32>
  %2 = braid.constant {value = dense<7.0> : tensor<1x1x1x1xf32>} : tensor<1x1x1x1xf32>
  %3 = braid.broadcast %0 : (tensor<1x1xf32>) -> tensor<64x1024xf32>
  %4 = braid.reshape %3 : (tensor<64x1024xf32>) -> tensor<1x1x64x1024xf32>
  %5 = braid.add %x, %4 : (tensor<1x2x64x1024xf32>, tensor<1x1x64x1024xf32>) -> tensor<1x2x64x1024xf32>
  %6 = braid.reduce %3 {kind = "maximum", dims = array<i64: 1>} : (tensor<64x1024xf32>) -> tensor<64x1xf32>
  %7 = braid.eq %6, %1 : (tensor<64x1xf32>, tensor<1x1xf32>) -> tensor<64x1xi1>
  %8 = braid.reshape %7 : (tensor<64x1xi1>) -> tensor<1x1x64x1xi1>
  %9 = braid.select %8, %2, %5 : (tensor<1x1x64x1xi1>, tensor<1x1x1x1xf32>, tensor<1x2x64x1024xf32>) -> tensor<1x2x64x1024xf32>
  func.return %9 : tensor<1x2x64x1024xf32>
}

// Sums of it are other numbers.
// CHECK-LABEL: @sums_of_a_repeated_number
// CHECK:         braid.reduce {{.*}} {kind = "add"
func.func @sums_of_a_repeated_number() -> tensor<64x1xf32> {
  %0 = braid.constant {value = dense<2.0> : tensor<1x1xf32>} : tensor<1x1xf32>
  %1 = braid.broadcast %0 : (tensor<1x1xf32>) -> tensor<64x1024xf32>
  %2 = braid.reduce %1 {kind = "add", dims = array<i64: 1>} : (tensor<64x1024xf32>) -> tensor<64x1xf32>
  func.return %2 : tensor<64x1xf32>
}

// A merged reshape has the sizes of open dims of the last one.
// CHECK-LABEL: @open_reshapes
// CHECK-NEXT: braid.reshape %x : {{.*}} -> tensor<1x?x8xf32, #braid.sizes<["batch * length"]>>
// CHECK-NEXT: return
func.func @open_reshapes(%x: tensor<?x?x8xf32, #braid.sizes<["batch", "length"]>>) -> tensor<1x?x8xf32, #braid.sizes<["batch * length"]>> {
  %a = braid.reshape %x : (tensor<?x?x8xf32, #braid.sizes<["batch", "length"]>>) -> tensor<?x8xf32, #braid.sizes<["batch * length"]>>
  %b = braid.reshape %a : (tensor<?x8xf32, #braid.sizes<["batch * length"]>>) -> tensor<1x?x8xf32, #braid.sizes<["batch * length"]>>
  return %b : tensor<1x?x8xf32, #braid.sizes<["batch * length"]>>
}

// Ops whose sizes are all numbers become plain ones; others stay.
// CHECK-LABEL: @sizes_that_are_numbers
// CHECK-DAG: braid.constant {value = dense<[2, 3]> : tensor<2xi64>
// CHECK-DAG: braid.slice %x {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 3>
// CHECK-DAG: braid.pad %x {low = array<i64: 1>, high = array<i64: 0>
// CHECK-DAG: braid.size_values {values = #braid.sizes<["n"]>}
// CHECK-DAG: braid.sized_slice %{{.*}} {offsets = #braid.sizes<["n"]>, sizes = #braid.sizes<["2"]>
func.func @sizes_that_are_numbers(%x: tensor<8xf32>) -> (tensor<2xi64>, tensor<2xf32>, tensor<9xf32>, tensor<1xi64>, tensor<2xf32>) {
  %c = braid.constant {value = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>} : tensor<4xf32>
  %a = braid.size_values {values = #braid.sizes<["2", "3"]>} : tensor<2xi64>
  %b = braid.sized_slice %x {offsets = #braid.sizes<["1"]>, sizes = #braid.sizes<["2"]>, strides = array<i64: 3>} : (tensor<8xf32>) -> tensor<2xf32>
  %d = braid.sized_pad %x {low = #braid.sizes<["1"]>, high = #braid.sizes<["0"]>, value = 0.0 : f32} : (tensor<8xf32>) -> tensor<9xf32>
  %e = braid.size_values {values = #braid.sizes<["n"]>} : tensor<1xi64>
  %f = braid.sized_slice %c {offsets = #braid.sizes<["n"]>, sizes = #braid.sizes<["2"]>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  return %a, %b, %d, %e, %f : tensor<2xi64>, tensor<2xf32>, tensor<9xf32>, tensor<1xi64>, tensor<2xf32>
}

// A slice of a slice is one, with the strides of both.
// CHECK-LABEL: @slices_of_slices
// CHECK-DAG: braid.slice %x {offsets = array<i64: 9>, sizes = array<i64: 2>, strides = array<i64: -6>
// CHECK-DAG: braid.sized_slice %y {offsets = #braid.sizes<["n - 2"]>, sizes = #braid.sizes<["2"]>, strides = array<i64: -2>
func.func @slices_of_slices(%x: tensor<12xf32>, %y: tensor<?xf32, #braid.sizes<["n"]>>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = braid.slice %x {offsets = array<i64: 11>, sizes = array<i64: 6>, strides = array<i64: -2>} : (tensor<12xf32>) -> tensor<6xf32>
  %b = braid.slice %a {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 3>} : (tensor<6xf32>) -> tensor<2xf32>
  %c = braid.sized_slice %y {offsets = #braid.sizes<["n - 1"]>, sizes = #braid.sizes<["n"]>, strides = array<i64: -1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n"]>>
  %d = braid.slice %c {offsets = array<i64: 1>, sizes = array<i64: 2>, strides = array<i64: 2>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<2xf32>
  func.return %b, %d : tensor<2xf32>, tensor<2xf32>
}
