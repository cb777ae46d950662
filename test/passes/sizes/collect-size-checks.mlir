// RUN: %braid-opt %s -p collect-size-checks --split-input-file | filecheck %s
// RUN: not %braid-opt %S/Inputs/impossible-sizes.mlir -p collect-size-checks 2>&1 | filecheck %s --check-prefix=IMPOSSIBLE

// Operands are repeated where their extent is the number 1 alone; windows must fit.
// CHECK-LABEL: @checks
// CHECK-SAME: braid.size_checks = [
// CHECK-SAME: {size = #braid.sizes<["-m + n"]>, zero = true, message = "'sum' (braid.add) needs n = m"}
// CHECK-SAME: {size = #braid.sizes<["n - 4"]>, message = "'part' (braid.sized_slice) needs 0 <= n - 4"}]
func.func @checks(%a: tensor<?x4xf32, #braid.sizes<["n"]>>, %b: tensor<?x4xf32, #braid.sizes<["m"]>>) -> tensor<4x4xf32> {
  %sum = braid.add %a, %b {braid.name = "sum"} : (tensor<?x4xf32, #braid.sizes<["n"]>>, tensor<?x4xf32, #braid.sizes<["m"]>>) -> tensor<?x4xf32, #braid.sizes<["select(n = 1, m, n)"]>>
  %part = braid.sized_slice %a {offsets = #braid.sizes<["n - 4", "0"]>, sizes = #braid.sizes<["4", "4"]>, strides = array<i64: 1, 1>, braid.name = "part"} : (tensor<?x4xf32, #braid.sizes<["n"]>>) -> tensor<4x4xf32>
  func.return %part : tensor<4x4xf32>
}

// -----

// Assumptions about symbols prove that the slice is in bounds, and are checked themselves.
// CHECK-LABEL: @proven
// CHECK-SAME: braid.size_checks = [{size = #braid.sizes<["n - 4"]>, message = "size 'n' must be at least 4"}, {size = #braid.sizes<["-n + 96"]>, message = "size 'n' must be at most 96"}, {size = #braid.sizes<["n mod 4"]>, zero = true, message = "size 'n' must be a multiple of 4"}]
func.func @proven(%a: tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32> attributes {braid.symbols = {n = #braid.symbol<{min = 4 : i64, max = 96 : i64, multiple_of = 4 : i64}>, unused = #braid.symbol<{min = 1 : i64}>}} {
  %part = braid.sized_slice %a {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
  func.return %part : tensor<4xf32>
}

// -----

// Checks that one branch needs are made where it is taken, those that both need before them.
// CHECK-LABEL: @branches
// CHECK-SAME: braid.size_checks = [{size = #braid.sizes<["n - 4"]>, message = "'both' (braid.sized_slice) needs 0 <= n - 4"}]
// CHECK: }{braid.branch_size_checks = {{\[\[}}{size = #braid.sizes<["n - 8"]>, message = "'one' (braid.sized_slice) needs 0 <= n - 8"}], []]}
func.func @branches(%a: tensor<?xf32, #braid.sizes<["n"]>>, %c: i1) -> tensor<4xf32> {
  %y = scf.if %c -> (tensor<4xf32>) {
    %both = braid.sized_slice %a {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>, braid.name = "both"} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    %one = braid.sized_slice %a {offsets = #braid.sizes<["n - 8"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>, braid.name = "one"} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    scf.yield %one : tensor<4xf32>
  } else {
    %other = braid.sized_slice %a {offsets = #braid.sizes<["n - 4"]>, sizes = #braid.sizes<["4"]>, strides = array<i64: 1>, braid.name = "other"} : (tensor<?xf32, #braid.sizes<["n"]>>) -> tensor<4xf32>
    scf.yield %other : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}

// IMPOSSIBLE: error: 'braid.sized_slice' needs 0 <= n - 4, which the sizes of the function exclude
