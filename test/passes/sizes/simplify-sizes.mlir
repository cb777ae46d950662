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

// What is assumed of a symbol counts too.
// CHECK-LABEL: @assumed
// CHECK:         -> tensor<?xf32, #braid.sizes<["n"]>>
// CHECK:         func.return %x
func.func @assumed(%x: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["min(n, 64)"]>> attributes {braid.symbols = {n = #braid.symbol<{max = 64 : i64}>}} {
  %part = braid.sized_slice %x {offsets = #braid.sizes<["0"]>, sizes = #braid.sizes<["min(n, 64)"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<?xf32, #braid.sizes<["min(n, 64)"]>>
  func.return %part : tensor<?xf32, #braid.sizes<["min(n, 64)"]>>
}

// -----

// What a branch needs holds in that branch alone, and is not relied on outside of it.
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
