// RUN: %braid-opt %s -p collect-size-checks,simplify-sizes,canonicalize --split-input-file | filecheck %s

// The last window needs n to be at least 4, so that the slice is of everything.
// CHECK-LABEL: @checked
// CHECK-SAME:    (%x: tensor<?xf32, #braid.sizes<["n"]>>) -> (tensor<4xf32>, tensor<?xf32, #braid.sizes<["n"]>>)
// CHECK-SAME:    braid.size_checks = [{size = #braid.sizes<["n - 4"]>
// CHECK-NEXT:    %last = braid.sized_slice
// CHECK-NEXT:    func.return %last, %x
func.func @checked(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> (tensor<4xf32>, tensor<?xf32, #braid.sizes<["n - min(n, 2) + 2"]>>) {
  %last = braid.sized_slice %x {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
  %all = braid.sized_slice %x {offsets = #braid.sizes<["min(n, 2) - 2"]>, sizes = #braid.sizes<["n - min(n, 2) + 2"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["n - min(n, 2) + 2"]>>
  func.return %last, %all : tensor<4xf32>, tensor<?xf32, #braid.sizes<["n - min(n, 2) + 2"]>>
}

// -----

// Assumptions about a symbol count, too.
// CHECK-LABEL: @assumed
// CHECK:         -> tensor<?xf32, #braid.sizes<["n"]>>
// CHECK:         func.return %x
func.func @assumed(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["min(n, 64)"]>> attributes {braid.symbols = {n = #braid.symbol<{max = 64 : i64}>}} {
  %part = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["min(n, 64)"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["min(n, 64)"]>>
  func.return %part : tensor<?xf32, #braid.sizes<["min(n, 64)"]>>
}

// -----

// A branch's checks hold only in that branch, and are not relied on outside of it.
// CHECK-LABEL: @branches
// CHECK:         tensor<?xf32, #braid.sizes<["min(n, 4)"]>>
func.func @branches(%x: tensor<?xf32, #braid.sizes<["n"]>>, %c: i1) -> (tensor<4xf32>, tensor<?xf32, #braid.sizes<["min(n, 4)"]>>) {
  %zero = braid.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32>
  %y = scf.if %c -> (tensor<4xf32>) {
    %part = braid.sized_slice %x {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    scf.yield %part : tensor<4xf32>
  } else {
    scf.yield %zero : tensor<4xf32>
  }
  %first = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["min(n, 4)"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["min(n, 4)"]>>
  func.return %y, %first : tensor<4xf32>, tensor<?xf32, #braid.sizes<["min(n, 4)"]>>
}

// -----

// An image is halved three times, and what is enlarged again is added to what was there before: of
// each sum a run checks that both are as high, which makes all heights multiples of the smallest.
// CHECK-LABEL: @pyramid
// CHECK-SAME:    -> tensor<?xf32, #braid.sizes<["4 * ((h + 7) floordiv 8)"]>>
// CHECK:         %low = braid.add %b, %c2 : (tensor<?xf32, #braid.sizes<["2 * ((h + 7) floordiv 8)"]>>, tensor<?xf32, #braid.sizes<["2 * ((h + 7) floordiv 8)"]>>) -> tensor<?xf32, #braid.sizes<["2 * ((h + 7) floordiv 8)"]>>
// CHECK:         %high = braid.add {{.*}} -> tensor<?xf32, #braid.sizes<["4 * ((h + 7) floordiv 8)"]>>
func.func @pyramid(%x: tensor<?xf32, #braid.sizes<["h"]>>) -> tensor<?xf32, #braid.sizes<["select((h + 1) floordiv 2 = 1, 2 * select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4), (h + 1) floordiv 2)"]>> {
  %a = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["(h + 1) floordiv 2"]>, strides = array<i64: 2>} : (tensor<?xf32, #braid.sizes<["h"]>>) -> tensor<?xf32, #braid.sizes<["(h + 1) floordiv 2"]>>
  %b = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["(h + 3) floordiv 4"]>, strides = array<i64: 4>} : (tensor<?xf32, #braid.sizes<["h"]>>) -> tensor<?xf32, #braid.sizes<["(h + 3) floordiv 4"]>>
  %c = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["(h + 7) floordiv 8"]>, strides = array<i64: 8>} : (tensor<?xf32, #braid.sizes<["h"]>>) -> tensor<?xf32, #braid.sizes<["(h + 7) floordiv 8"]>>
  %c2 = braid.concat %c, %c {dim = 0 : i64} : (tensor<?xf32, #braid.sizes<["(h + 7) floordiv 8"]>>, tensor<?xf32, #braid.sizes<["(h + 7) floordiv 8"]>>) -> tensor<?xf32, #braid.sizes<["2 * ((h + 7) floordiv 8)"]>>
  %low = braid.add %b, %c2 : (tensor<?xf32, #braid.sizes<["(h + 3) floordiv 4"]>>, tensor<?xf32, #braid.sizes<["2 * ((h + 7) floordiv 8)"]>>) -> tensor<?xf32, #braid.sizes<["select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4)"]>>
  %low2 = braid.concat %low, %low {dim = 0 : i64} : (tensor<?xf32, #braid.sizes<["select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4)"]>>, tensor<?xf32, #braid.sizes<["select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4)"]>>) -> tensor<?xf32, #braid.sizes<["2 * select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4)"]>>
  %high = braid.add %a, %low2 : (tensor<?xf32, #braid.sizes<["(h + 1) floordiv 2"]>>, tensor<?xf32, #braid.sizes<["2 * select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4)"]>>) -> tensor<?xf32, #braid.sizes<["select((h + 1) floordiv 2 = 1, 2 * select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4), (h + 1) floordiv 2)"]>>
  func.return %high : tensor<?xf32, #braid.sizes<["select((h + 1) floordiv 2 = 1, 2 * select((h + 3) floordiv 4 = 1, 2 * ((h + 7) floordiv 8), (h + 3) floordiv 4), (h + 1) floordiv 2)"]>>
}

// -----

// Symbols stay as they are, since inputs say what they are: m is no better than n.
// CHECK-LABEL: @symbols
// CHECK:         tensor<?xf32, #braid.sizes<["m"]>>) -> tensor<?xf32, #braid.sizes<["n"]>>
// CHECK:         %y = braid.add %a, %b {{.*}} -> tensor<?xf32, #braid.sizes<["n"]>>
func.func @symbols(%a: tensor<?xf32, #braid.sizes<["n"]>>, %b: tensor<?xf32, #braid.sizes<["m"]>>) -> tensor<?xf32, #braid.sizes<["select(n = 1, m, n)"]>> {
  %y = braid.add %a, %b : (tensor<?xf32, #braid.sizes<["n"]>>, tensor<?xf32, #braid.sizes<["m"]>>) -> tensor<?xf32, #braid.sizes<["select(n = 1, m, n)"]>>
  func.return %y : tensor<?xf32, #braid.sizes<["select(n = 1, m, n)"]>>
}
